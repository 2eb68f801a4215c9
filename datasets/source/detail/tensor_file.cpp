#include "muster/datasets/source/detail/tensor_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "muster/core/base/error.h"
#include "muster/core/base/printable_text.h"
#include "muster/core/data/non_finite_value.h"
#include "muster/core/io/safetensors.h"

namespace muster::detail {
namespace {

constexpr std::string_view kFeatures = "features", kLabels = "labels", kFeaturesMask = "featuresMask",
                           kLabelsMask = "labelsMask";
constexpr std::array kRead{kFeatures, kLabels, kFeaturesMask, kLabelsMask};

template <typename... Args>
void requireIn(const std::filesystem::path& path, bool condition, fmt::format_string<Args...> text,
               Args&&... args) {
  if (!condition) throw FileError(path, fmt::format(text, std::forward<Args>(args)...));
}

void requireKnown(const std::filesystem::path& path, const Safetensors& file) {
  for (const auto& [name, values] : file.tensors)
    requireIn(path, std::ranges::find(kRead, name) != kRead.end(),
              "has a tensor called {}, {}, which is not read; those that are read are {}",
              printableText(name), values.toString(), fmt::join(kRead, ", "));
}

const Tensor& examplesOf(const std::filesystem::path& path, const Safetensors& file, std::string_view name) {
  const Tensor* const found = file.find(name);
  if (found == nullptr) throw FileError(path, fmt::format("has no tensor called {}", name));
  requireIn(path, found->shape().rank() > 0, "{} needs examples, got {}", name, found->toString());
  return *found;
}

/// The shape of a weight for each example or, of labels at each step, each step.
Shape rowsOf(const Tensor& labels) {
  return labels.dtype() == DType::Int64 ? labels.shape() : labels.shape().dropLast();
}

void requireMask(const std::filesystem::path& path, std::string_view name, const Tensor& mask,
                 const Shape& shape) {
  requireIn(path, mask.dtype() == DType::Float32 && mask.shape() == shape, "{} has to be float32 {}, got {}",
            name, shape.toString(), mask.toString());
  const bool ofSteps = name == kFeaturesMask;
  const auto values = mask.span<float>();
  const auto bad = std::ranges::find_if_not(values, [ofSteps](float value) {
    return ofSteps ? value == 0 || value == 1 : value >= 0 && std::isfinite(value);
  });
  if (bad == values.end()) {
    requireIn(path, values.empty() || std::ranges::any_of(values, [](float value) { return value > 0; }),
              "{} is 0 everywhere, so {}", name, ofSteps ? "no step is real" : "no label counts");
    return;
  }
  throw FileError(path,
                  fmt::format("{} of example {} (counted from 0) is {}; it has to be {}", name,
                              (bad - values.begin()) / (std::ssize(values) / shape[0]),
                              std::isnan(*bad) ? std::abs(*bad) : *bad,  // NaN is printed without a sign
                              ofSteps ? "1 for a real step or 0 for padding" : "finite and at least 0"));
}

/// The weights of labels, as the loss reads them; undefined: all are 1.
Tensor weightsOf(const TensorFile& data) {
  Tensor weights;
  const Shape rows = rowsOf(data.labels);
  for (const auto& mask : data.masks)
    if (mask.value.shape() == rows && (mask.name == kLabels || rows.rank() == 2))
      weights = mask.value;  // that of the labels is the last
  return weights;
}

/// Sets values of weight 0 that are unusable to 0.
template <typename Value, typename Unusable>
void clearIgnored(std::span<Value> values, const Tensor& weights, const Unusable& unusable) {
  if (!weights.defined() || values.empty()) return;
  const auto each = std::ssize(values) / weights.elements();
  for (std::int64_t i = 0; i < std::ssize(values); ++i)
    if (auto& value = values[static_cast<std::size_t>(i)];
        unusable(value) && weights.data<float>()[i / each] == 0)
      value = 0;
}

/// Sets values of weight 0 that are not finite to 0. @throws FileError for another one.
void requireFinite(const std::filesystem::path& path, std::string_view name, const Tensor& values,
                   const Tensor& weights) {
  if (values.dtype() != DType::Float32) return;
  if (const auto bad = firstNonFinite(values, weights))
    throw FileError(path,
                    fmt::format("the {} hold {}: example {}, {}, counted from 0; only padding (featuresMask "
                                "0) and labels of weight 0 (labelsMask 0) may hold such a value",
                                name, bad->value, bad->example, bad->place));
  clearIgnored(values.span<float>(), weights, [](float value) { return !std::isfinite(value); });
}

std::optional<LargestLabel> largestOf(const std::filesystem::path& path, const TensorFile& data) {
  if (data.labels.dtype() != DType::Int64) return {};
  LargestLabel largest{.file = path.string()};
  const auto labels = data.labels.span<std::int64_t>();
  const Tensor weights = weightsOf(data);
  for (std::int64_t i = 0; i < std::ssize(labels); ++i) {
    if (weights.defined() && weights.data<float>()[i] == 0) continue;
    const auto label = labels[static_cast<std::size_t>(i)];
    const auto example = i / (std::ssize(labels) / data.labels.shape()[0]);
    requireIn(path, label >= 0, "the label of example {} (counted from 0) is {}; classes are 0 and above",
              example, label);
    if (label > largest.label) largest = {.file = largest.file, .label = label, .example = example};
  }
  return largest;
}

}  // namespace

TensorFile readTensorFile(const std::filesystem::path& path) {
  const Safetensors file = readSafetensors(path);
  requireKnown(path, file);
  TensorFile data{examplesOf(path, file, kFeatures), examplesOf(path, file, kLabels)};
  const Shape& features = data.features.shape();
  requireIn(path, data.features.dtype() != DType::Float64,
            "features have to be float32, uint8 or int64 [N, ...], got {}", data.features.toString());
  requireIn(path, data.labels.dtype() == DType::Int64 || data.labels.dtype() == DType::Float32,
            "labels have to be int64 [N] or float32 [N, F], got {}", data.labels.toString());
  requireIn(path, features[0] == data.labels.shape()[0],
            "features {} and labels {} differ in their number of examples", data.features.toString(),
            data.labels.toString());
  if (data.labels.dtype() == DType::Float32 && data.labels.shape().rank() == 1)
    data.labels = data.labels.reshape({features[0], 1});
  if (const Tensor* const mask = file.find(kFeaturesMask)) {
    requireIn(path, features.rank() >= (data.features.dtype() == DType::Int64 ? 2 : 3),
              "featuresMask is for sequences [N, T, F] or int64 [N, T], and features are {}",
              data.features.toString());
    requireMask(path, kFeaturesMask, *mask, {features[0], features[1]});
    data.masks.push_back({std::string(kFeatures), *mask});
  }
  if (const Tensor* const mask = file.find(kLabelsMask)) {
    requireMask(path, kLabelsMask, *mask, rowsOf(data.labels));
    data.masks.push_back({std::string(kLabels), *mask});
  }
  const Tensor weights = weightsOf(data);
  requireFinite(path, kFeatures, data.features,
                file.find(kFeaturesMask) ? data.masks.front().value : Tensor());
  requireFinite(path, kLabels, data.labels, weights);
  if (data.labels.dtype() == DType::Int64)  // may be -1 for none
    clearIgnored(data.labels.span<std::int64_t>(), weights, [](std::int64_t) { return true; });
  data.largest = largestOf(path, data);
  return data;
}

}  // namespace muster::detail
