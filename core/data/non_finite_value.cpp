#include "muster/core/data/non_finite_value.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace muster {
namespace {

/// The place of element `index` in an example of this shape, counted from 1.
std::string placeOf(std::int64_t index, const Shape& example) {
  if (example.rank() == 1) return fmt::format("column {}", index + 1);
  std::vector<std::int64_t> place;
  for (int axis = example.rank(); axis-- > 0; index /= example[axis])
    place.push_back(index % example[axis] + 1);
  std::ranges::reverse(place);
  return fmt::format("position [{}]", fmt::join(place, ", "));
}

/// The begin of the sentence: "the features hold", or "x holds" for an input called x.
std::string holder(const std::string& name) {
  const bool usual = name.empty() || name == "features" || name == "labels";
  return usual ? fmt::format("the {} hold", name.empty() ? "features" : name) : name + " holds";
}

std::optional<std::string> badValue(const NamedTensor& tensor, const Tensor& weights,
                                    const BatchStamp& stamp) {
  const Tensor values = tensor.gathered();
  if (values.dtype() != DType::Float32 || !values.device().isCpu() || values.shape().rank() < 2 ||
      values.elements() == 0)
    return {};
  const Shape example = values.shape().dropFirst();
  const std::int64_t size = example.elements();
  for (std::int64_t i = 0; i < values.elements(); ++i) {
    const float value = values.data<float>()[i];
    if (std::isfinite(value)) continue;
    const std::int64_t row = i / size;
    if (weights.defined() && weights.data<float>()[row] == 0) continue;
    return fmt::format("{} {}: example {} of the batch (example {} of the epoch), {}, counted from 1",
                       holder(tensor.name), std::isnan(value) ? std::fabs(value) : value, row + 1,
                       stamp.firstExample + row + 1, placeOf(i % size, example));
  }
  return {};
}

/// The weights of examples float32 [N], if the batch has them.
Tensor weightsOf(const Batch& batch) {
  for (const auto& [name, mask, source] : batch.masks)
    if (name != "features" && mask.dtype() == DType::Float32 && mask.shape().rank() == 1) return mask;
  return {};
}

}  // namespace

std::optional<std::string> nonFiniteValue(const Batch& batch) {
  for (const auto& tensor : batch.features)
    if (auto found = badValue(tensor, {}, batch.stamp)) return found;
  for (const auto& tensor : batch.labels)
    if (auto found = badValue(tensor, weightsOf(batch), batch.stamp)) return found;
  return {};
}

}  // namespace muster
