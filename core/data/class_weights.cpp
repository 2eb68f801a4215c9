#include "muster/core/data/class_weights.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/core/base/error.h"

namespace muster {
namespace {

constexpr std::string_view kSequenceMask = "features";

void multiply(const Tensor& by, Tensor& mask) {
  require(by.shape() == mask.shape() && by.dtype() == DType::Float32,
          "class weights: the batch's mask is {}, and the labels have {} weights", by.toString(),
          mask.shape().toString());
  const auto factors = by.span<float>();
  std::ranges::transform(mask.span<float>(), factors, mask.span<float>().begin(), std::multiplies<>());
}

}  // namespace

ClassWeights::ClassWeights(DataSetIterator& data, std::vector<float> weights, std::string output)
    : data_(data), weights_(std::move(weights)), output_(std::move(output)) {
  require(weights_.size() >= 2, "class weights: at least two classes have weights, got {}", weights_.size());
  for (std::size_t c = 0; c < weights_.size(); ++c)
    require(std::isfinite(weights_[c]) && weights_[c] >= 0,
            "class weights: the weight of class {} must be finite and not negative, got {}", c, weights_[c]);
  require(std::ranges::any_of(weights_, [](float w) { return w > 0; }), "class weights: all are 0");
}

bool ClassWeights::next(Batch& batch) {
  const std::string_view name = output_.empty() ? "class weights" : std::string_view(output_);
  NamedTensor mask;  // reuses the memory of the mask that an earlier call added to this batch
  mask.name = name;
  const auto isOurs = [&](const NamedTensor& one) { return one.name == name; };
  if (const auto ours = std::ranges::find_if(batch.masks, isOurs);
      output_.empty() && ours != batch.masks.end()) {
    mask = std::move(*ours);
    batch.masks.erase(ours);
  }
  if (!data_.next(batch)) {
    if (mask.value.defined()) batch.masks.push_back(std::move(mask));
    return false;
  }
  const NamedTensor* labels = batch.labelsOf(output_);
  require(labels != nullptr, "class weights: the batch has no labels{}{}", output_.empty() ? "" : " called ",
          output_);
  weigh(labels->source ? labels->gathered() : labels->value, mask.value);
  const auto isLabelMask = [&](const NamedTensor& one) {
    return output_.empty() ? one.name != kSequenceMask : one.name == output_;
  };
  const auto given = std::ranges::find_if(batch.masks, isLabelMask);
  if (given != batch.masks.end()) {
    multiply(given->value, mask.value);
    batch.masks.erase(given);
  } else if (const Tensor* steps = batch.sequenceMask(); steps && mask.value.shape().rank() == 2) {
    multiply(*steps, mask.value);
  }
  batch.masks.push_back(std::move(mask));
  return true;
}

void ClassWeights::weigh(const Tensor& labels, Tensor& mask) const {
  const Shape& shape = labels.shape();
  if (labels.dtype() == DType::Int64) {
    mask.resize(shape, DType::Float32);
    std::ranges::transform(labels.span<std::int64_t>(), mask.span<float>().begin(),
                           [this](std::int64_t label) { return weightOf(label); });
    return;
  }
  const auto classes = static_cast<std::int64_t>(weights_.size());
  require(labels.dtype() == DType::Float32 && shape.rank() >= 2 && shape[shape.rank() - 1] == classes,
          "class weights: labels must be int64 classes, or float32 over {} classes, got {}", classes,
          labels.toString());
  mask.resize(shape.rank() == 2 ? Shape{shape[0]} : Shape{shape[0], shape[1]}, DType::Float32);
  const auto values = labels.span<float>();
  auto weights = mask.span<float>();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    double sum = 0;
    for (std::size_t c = 0; c < weights_.size(); ++c)
      sum += static_cast<double>(values[i * weights_.size() + c]) * static_cast<double>(weights_[c]);
    weights[i] = static_cast<float>(sum);
  }
}

float ClassWeights::weightOf(std::int64_t label) const {
  require(label >= 0 && label < static_cast<std::int64_t>(weights_.size()),
          "class weights: there are weights for classes 0 to {}, and a label is {}", weights_.size() - 1,
          label);
  return weights_[static_cast<std::size_t>(label)];
}

}  // namespace muster
