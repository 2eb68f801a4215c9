#include "muster/core/nn/mask_remark.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/nn/compile/network_probe.h"
#include "muster/core/nn/layers/conv1d.h"
#include "muster/core/nn/layers/embedding.h"
#include "muster/core/nn/layers/pool1d.h"
#include "muster/core/nn/layers/recurrent.h"
#include "muster/core/nn/layers/reshape.h"
#include "muster/core/nn/layers/self_attention.h"
#include "muster/core/nn/layers/sequence.h"
#include "muster/core/nn/step/network_impl.h"

namespace muster {
namespace {

constexpr std::array kReadingMasks{Embedding::kType,     LSTM::kType,     GRU::kType,
                                   SelfAttention::kType, LastStep::kType, MeanOverTime::kType};
constexpr std::array kMixingSteps{Conv1d::kType, MaxPool1d::kType, AveragePool1d::kType, Flatten::kType,
                                  Reshape::kType};

bool isOneOf(std::string_view type, std::span<const std::string_view> types) {
  return std::ranges::find(types, type) != types.end();
}

/// Whether padding only follows the real steps. @param mask  float32 [N, T].
bool onlyAtEnd(const Tensor& mask) {
  const std::int64_t steps = mask.shape()[1];
  const auto values = mask.span<float>();
  for (std::int64_t i = 1; i < std::ssize(values); ++i)
    if (i % steps != 0 && values[static_cast<std::size_t>(i)] > values[static_cast<std::size_t>(i) - 1])
      return false;
  return true;
}

/// Whether there is padding and all of it is zeros. @param features  float32 or uint8 [N, T, ...].
template <typename T>
bool paddedWithZeros(const Tensor& features, const Tensor& mask) {
  const auto values = features.span<T>();
  const auto real = mask.span<float>();
  const std::size_t each = real.empty() ? 0 : values.size() / real.size();
  bool padded = false;
  for (std::size_t i = 0; i < real.size(); ++i) {
    if (real[i] != 0) continue;
    padded = true;
    if (!std::ranges::all_of(values.subspan(i * each, each), [](T value) { return value == 0; }))
      return false;
  }
  return padded;
}

/// Whether padding of these features may reach a layer.
bool mayHoldAnything(const Tensor& features, const Tensor& mask) {
  const Shape &shape = features.shape(), &steps = mask.shape();
  if (shape.rank() < 3 || shape[0] != steps[0] || shape[1] != steps[1]) return false;
  return features.dtype() == DType::UInt8 ? !paddedWithZeros<std::uint8_t>(features, mask)
                                          : !paddedWithZeros<float>(features, mask);
}

/// Whether a step of the output depends on the same step of the input or, with padding at the end, on earlier
/// ones alone.
bool keepsSteps(const Module& module, bool paddingAtEnd) {
  const auto* const convolution = dynamic_cast<const detail::ModuleOf<Conv1d>*>(&module);
  if (convolution == nullptr) return false;
  const Conv1d& layer = convolution->options();
  return layer.stride == 1 && ((layer.kernel == 1 && layer.padding == 0) || (layer.causal && paddingAtEnd));
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
  std::vector<bool> reached;  // [value] whether what padding holds reaches its padding
  for (const auto& input : plan.inputs) {
    const auto found = plan.inputs.size() == 1
                           ? first.features.begin()
                           : std::ranges::find(first.features, input.name, &NamedTensor::name);
    reached.push_back(!input.indices && found != first.features.end() &&
                      mayHoldAnything(found->gathered(), *mask));
  }
  for (const auto& node : plan.nodes) {
    const bool reads = std::ranges::any_of(node.inputs, [&](std::size_t value) { return reached[value]; });
    const auto type = node.module->type();
    reached.push_back(reads && !isOneOf(type, kReadingMasks));
    if (!reads || !isOneOf(type, kMixingSteps) || keepsSteps(*node.module, atEnd)) continue;
    const std::string_view name = node.name, flatten = ".flatten";
    const bool added = type == Flatten::kType && name.ends_with(flatten);  // before a dense layer
    return fmt::format(
        "{} {} the batches' mask called features, so what padding holds changes its outputs: fill padding "
        "with "
        "zeros, or take layers that read the mask (LSTM, GRU, SelfAttention, LastStep, MeanOverTime)",
        added ? name.substr(0, name.size() - flatten.size()) : name,
        added ? "flattens sequences and ignores" : fmt::format("({}) ignores", type));
  }
  return {};
}

}  // namespace muster
