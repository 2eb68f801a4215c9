#include "muster/datasets/source/detail/tensor_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "muster/core/base/error.h"
#include "muster/core/base/printable_text.h"
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
  if (bad == values.end()) return;
  throw FileError(path,
                  fmt::format("{} of example {} (counted from 0) is {}; it has to be {}", name,
                              (bad - values.begin()) / (std::ssize(values) / shape[0]),
                              std::isnan(*bad) ? std::abs(*bad) : *bad,  // NaN is printed without a sign
                              ofSteps ? "1 for a real step or 0 for padding" : "finite and at least 0"));
}

/// The weights of int64 labels, as the loss reads them; undefined: all are 1.
Tensor weightsOf(const TensorFile& data) {
  Tensor weights;
  for (const auto& mask : data.masks)
    if (mask.value.shape() == data.labels.shape() &&
        (mask.name == kLabels || data.labels.shape().rank() == 2))
      weights = mask.value;  // that of the labels is the last
  return weights;
}

/// Sets labels of weight 0, as -1 for none, to 0.
void clearIgnored(TensorFile& data) {
  const Tensor weights = weightsOf(data);
  if (data.labels.dtype() != DType::Int64 || !weights.defined()) return;
  const auto labels = data.labels.span<std::int64_t>();
  for (std::int64_t i = 0; i < std::ssize(labels); ++i)
    if (weights.data<float>()[i] == 0) labels[static_cast<std::size_t>(i)] = 0;
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
  clearIgnored(data);
  data.largest = largestOf(path, data);
  return data;
}

}  // namespace muster::detail
