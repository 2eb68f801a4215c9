#include "muster/core/nn/mask_remark.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/nn/compile/network_probe.h"
#include "muster/core/nn/layers/reshape.h"
#include "muster/core/nn/step/network_impl.h"

namespace muster {
namespace {

/// Whether padding only follows the real steps. @param mask  float32 [N, T].
bool onlyAtEnd(const Tensor& mask) {
  const std::int64_t steps = mask.shape()[1];
  const auto values = mask.span<float>();
  for (std::int64_t i = 1; i < std::ssize(values); ++i)
    if (i % steps != 0 && values[static_cast<std::size_t>(i)] > values[static_cast<std::size_t>(i) - 1])
      return false;
  return true;
}

/// What a value holds at the padding of the first batch.
struct Padding {
  bool any = false;    // it has some
  bool zeros = false;  // all of it is zeros
};

/// @param features  float32 or uint8 [N, T, ...].
template <typename T>
Padding paddingIn(const Tensor& features, const Tensor& mask) {
  const auto values = features.span<T>();
  const auto real = mask.span<float>();
  const std::size_t each = real.empty() ? 0 : values.size() / real.size();
  Padding padding{.zeros = true};
  for (std::size_t i = 0; i < real.size(); ++i) {
    if (real[i] != 0) continue;
    padding.any = true;
    padding.zeros = padding.zeros &&
                    std::ranges::all_of(values.subspan(i * each, each), [](T value) { return value == 0; });
  }
  return padding;
}

/// None of features that are no sequences, or that the step refuses.
Padding paddingIn(const Tensor& features, const Tensor& mask) {
  const Shape &shape = features.shape(), &steps = mask.shape();
  if (shape.rank() < 3 || shape[0] != steps[0] || shape[1] != steps[1] || !features.device().isCpu() ||
      features.layout() != Layout::RowMajor)
    return {};
  if (features.dtype() == DType::UInt8) return paddingIn<std::uint8_t>(features, mask);
  if (features.dtype() == DType::Float32) return paddingIn<float>(features, mask);
  return {};
}

}  // namespace

std::string maskRemark(const Model& model, const Batch& first) {
  const auto* const network = dynamic_cast<const Network*>(&model);
  const Tensor* const mask = first.sequenceMask();
  if (network == nullptr || mask == nullptr || mask->dtype() != DType::Float32 || mask->shape().rank() != 2 ||
      !mask->device().isCpu())
    return {};
  const auto& plan = detail::NetworkProbe::of(*network).plan;
  const bool atEnd = onlyAtEnd(*mask);
  std::vector<Padding> held;  // [value]
  for (const auto& input : plan.inputs) {
    const auto found = plan.inputs.size() == 1
                           ? first.features.begin()
                           : std::ranges::find(first.features, input.name, &NamedTensor::name);
    const bool read = !input.indices && found != first.features.end();
    held.push_back(read ? paddingIn(found->gathered(), *mask) : Padding());
  }
  for (const auto& node : plan.nodes) {
    const auto use = node.module->paddingUse();
    const bool any = std::ranges::any_of(node.inputs, [&](std::size_t value) { return held[value].any; });
    const bool zeros = std::ranges::all_of(
        node.inputs, [&](std::size_t value) { return !held[value].any || held[value].zeros; });
    held.push_back(
        {.any = any && use != PaddingUse::ReadsMask, .zeros = zeros && use != PaddingUse::PerStep});
    const bool mixes = use == PaddingUse::Mixes || (use == PaddingUse::MixesLater && !atEnd);
    if (!any || zeros || !mixes) continue;
    const std::string_view name = node.name, flatten = ".flatten";
    const auto type = node.module->type();
    const bool added = type == Flatten::kType && name.ends_with(flatten);  // before a dense layer
    return fmt::format(
        "{} {} the batches' mask called features, so what padding holds changes its outputs: let padding be "
        "zeros there, or take layers that read the mask (LSTM, GRU, SelfAttention, LastStep, MeanOverTime)",
        added ? name.substr(0, name.size() - flatten.size()) : name,
        added ? "flattens sequences and ignores" : fmt::format("({}) ignores", type));
  }
  return {};
}

}  // namespace muster
