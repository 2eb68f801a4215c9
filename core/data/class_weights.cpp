#include "muster/core/data/class_weights.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "muster/core/base/error.h"

namespace muster {
namespace {

constexpr std::string_view kSequenceMask = "features";

/// Of the weights of labels: [N] or [N, T]. @throws InvalidArgument for labels that are not over these
/// classes.
Shape shapeOfWeights(const Tensor& labels, std::int64_t classes) {
  const Shape& shape = labels.shape();
  if (labels.dtype() == DType::Int64) return shape;
  require(labels.dtype() == DType::Float32 && shape.rank() >= 2 && shape[shape.rank() - 1] == classes,
          "class weights: labels must be int64 classes, or float32 over {} classes, got {}", classes,
          labels.toString());
  return shape.dropLast();
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
  const Tensor classes = labels->gathered();
  mask.value.resize(shapeOfWeights(classes, std::ssize(weights_)), DType::Float32);
  const auto isLabelMask = [&](const NamedTensor& one) {
    return output_.empty() ? one.name != kSequenceMask : one.name == output_;
  };
  const auto given = std::ranges::find_if(batch.masks, isLabelMask);
  const Tensor* const steps = mask.value.shape().rank() == 2 ? batch.sequenceMask() : nullptr;
  weigh(classes, given != batch.masks.end() ? &given->value : steps, mask.value);
  if (given != batch.masks.end()) batch.masks.erase(given);
  batch.masks.push_back(std::move(mask));
  return true;
}

void ClassWeights::weigh(const Tensor& labels, const Tensor* given, Tensor& mask) const {
  auto weights = mask.span<float>();
  if (given) {
    require(given->shape() == mask.shape() && given->dtype() == DType::Float32,
            "class weights: the batch's mask is {}, and the labels have {} weights", given->toString(),
            mask.shape().toString());
    std::ranges::copy(given->span<float>(), weights.begin());
  } else {
    std::ranges::fill(weights, 1.0f);
  }
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i] != 0) weights[i] *= weightOf(labels, i);
}

float ClassWeights::weightOf(const Tensor& labels, std::size_t place) const {
  if (labels.dtype() == DType::Int64) {
    const auto label = labels.span<std::int64_t>()[place];
    require(label >= 0 && label < std::ssize(weights_),
            "class weights: there are weights for classes 0 to {}, and a label is {}", weights_.size() - 1,
            label);
    return weights_[static_cast<std::size_t>(label)];
  }
  const auto shares = labels.span<float>().subspan(place * weights_.size(), weights_.size());
  double sum = 0;
  for (std::size_t c = 0; c < weights_.size(); ++c)
    sum += static_cast<double>(shares[c]) * static_cast<double>(weights_[c]);
  return static_cast<float>(sum);
}

}  // namespace muster
