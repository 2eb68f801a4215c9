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

const NamedTensor* featuresOf(const detail::NetworkPlan& plan, const Batch& batch,
                              const detail::NetworkInput& input) {
  const auto found = plan.inputs.size() == 1
                         ? batch.features.begin()
                         : std::ranges::find(batch.features, input.name, &NamedTensor::name);
  return found == batch.features.end() ? nullptr : &*found;
}

/// Whether the mask marks steps of an input, or a layer or loss reads it for steps that the network makes.
bool hasEffect(const detail::NetworkPlan& plan, const Batch& batch, const Shape& mask) {
  for (const auto& input : plan.inputs) {
    const NamedTensor* const found = featuresOf(plan, batch, input);
    if (!found) continue;
    const Shape shape = found->source
                            ? found->source->onCpu().shape().dropFirst().prepend(found->value.elements())
                            : found->value.shape();
    if (mask.rank() == 2 && (input.indices ? shape.rank() == 2 : shape.rank() >= 3) && shape[0] == mask[0] &&
        shape[1] == mask[1])
      return true;
  }
  return std::ranges::any_of(
             plan.nodes,
             [](const auto& node) { return node.module->paddingUse() == PaddingUse::ReadsMask; }) ||
         std::ranges::any_of(plan.outputs,
                             [&](const auto& output) { return plan.shapeOf(output.value).rank() == 2; });
}

}  // namespace

std::string maskRemark(const Model& model, const Batch& first) {
  const auto* const network = dynamic_cast<const Network*>(&model);
  const Tensor* const mask = first.sequenceMask();
  if (network == nullptr || mask == nullptr || mask->dtype() != DType::Float32) return {};
  const auto& plan = detail::NetworkProbe::of(*network).plan;
  if (!hasEffect(plan, first, mask->shape()))
    return fmt::format(
        "the batches' mask called features, {}, has no effect, as it marks steps of sequences and the "
        "network has no such input; weights of examples have another name, such as labels",
        mask->shape().toString());
  if (mask->shape().rank() != 2 || !mask->device().isCpu()) return {};
  const bool atEnd = onlyAtEnd(*mask);
  std::vector<Padding> held;  // [value]
  for (const auto& input : plan.inputs) {
    const NamedTensor* const found = featuresOf(plan, first, input);
    const bool read = !input.indices && found != nullptr;
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
