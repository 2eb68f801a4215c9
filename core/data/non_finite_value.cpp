#include "muster/core/data/non_finite_value.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace muster {
namespace {

/// The place of element `index` in an example of this shape, counted from 0.
std::string placeOf(std::int64_t index, const Shape& example) {
  if (example.rank() == 1) return fmt::format("column {}", index);
  std::vector<std::int64_t> place;
  for (int axis = example.rank(); axis-- > 0; index /= example[axis])
    place.push_back(index % example[axis]);
  std::ranges::reverse(place);
  return fmt::format("position [{}]", fmt::join(place, ", "));
}

/// The begin of the sentence: "the features hold", or "x holds" for an input called x.
std::string holder(const std::string& name) {
  const bool usual = name.empty() || name == "features" || name == "labels";
  return usual ? fmt::format("the {} hold", name.empty() ? "features" : name) : name + " holds";
}

/// Weights [N] or [N, T] of values [N, ...] or [N, T, ...], if they fit.
std::span<const float> weightsFor(const Tensor& weights, const Shape& values) {
  if (!weights.defined() || weights.dtype() != DType::Float32 || !weights.device().isCpu()) return {};
  const Shape& rows = weights.shape();
  if (rows.rank() > values.rank()) return {};
  for (int axis = 0; axis < rows.rank(); ++axis)
    if (rows[axis] != values[axis]) return {};
  return weights.span<float>();
}

/// @param mask  examples or steps of weight 0 are not looked at; may be undefined.
std::optional<std::string> badValue(const NamedTensor& tensor, const Tensor& mask, const BatchStamp& stamp) {
  const auto bad = firstNonFinite(tensor.gathered(), mask);
  if (!bad) return {};
  return fmt::format("{} {}: example {} of the batch (example {} of the epoch), {}, counted from 0",
                     holder(tensor.name), bad->value, bad->example, stamp.firstExample + bad->example,
                     bad->place);
}

std::optional<std::string> badFeature(const Batch& batch, const Tensor& mask) {
  for (const auto& tensor : batch.features)
    if (auto found = badValue(tensor, mask, batch.stamp)) return found;
  return {};
}

std::optional<std::string> badLabel(const Batch& batch) {
  const bool only = batch.labels.size() == 1;
  for (const auto& tensor : batch.labels) {
    const Tensor mask = batch.lossMask(tensor.gathered().shape(), only ? std::string_view() : tensor.name);
    if (auto found = badValue(tensor, mask, batch.stamp)) return found;
  }
  return {};
}

}  // namespace

std::optional<NonFiniteValue> firstNonFinite(const Tensor& values, const Tensor& weights) {
  if (values.dtype() != DType::Float32 || !values.device().isCpu() || values.shape().rank() < 2 ||
      values.elements() == 0)
    return {};
  const Shape example = values.shape().dropFirst();
  const std::int64_t size = example.elements();
  const auto rows = weightsFor(weights, values.shape());
  const std::int64_t each = rows.empty() ? 1 : values.elements() / std::ssize(rows);
  const auto all = values.span<float>();
  for (std::int64_t i = 0; i < std::ssize(all); ++i) {
    const float value = all[static_cast<std::size_t>(i)];
    if (std::isfinite(value)) continue;
    if (!rows.empty() && rows[static_cast<std::size_t>(i / each)] == 0) continue;
    return NonFiniteValue{.value = fmt::format("{}", std::isnan(value) ? std::fabs(value) : value),
                          .example = i / size,
                          .place = placeOf(i % size, example)};
  }
  return {};
}

std::optional<std::string> nonFiniteValue(const Batch& batch) {
  const Tensor* steps = batch.sequenceMask();
  if (auto found = badFeature(batch, steps ? *steps : Tensor())) return found;
  if (auto found = badLabel(batch)) return found;
  // Layers that take each step by itself read padding, too, and their weights' gradients then are NaN.
  return steps ? badFeature(batch, {}) : std::nullopt;
}

}  // namespace muster
