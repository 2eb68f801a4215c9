#include "muster/core/nn/step/input_moments.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "muster/core/base/error.h"

namespace muster::detail {

InputMoments::InputMoments(const Shape& example) : example_(example) {
  const auto features = static_cast<std::size_t>(example.rank() == 3 ? example[0] : example[-1]);
  mean_.resize(features);
  squares_.resize(features);
  smallest_.resize(features, std::numeric_limits<float>::infinity());
  largest_.resize(features, -std::numeric_limits<float>::infinity());
}

void InputMoments::add(const Tensor& examples, const Tensor& mask) {
  example_ = examples.shape().dropFirst();  // sequences may have another length in each batch
  const auto features = static_cast<std::int64_t>(mean_.size());
  const std::int64_t size = example_.elements(), groups = size / features;
  const bool images = example_.rank() == 3;
  if (mask.defined())
    require(mask.shape() == Shape{examples.shape()[0], groups},
            "the mask of steps is {}, and the examples are {}", mask.toString(), examples.toString());
  for (std::int64_t n = 0; n < examples.shape()[0]; ++n, ++examples_) {
    const float* example = examples.data<float>() + n * size;
    requireFinite(example);
    if (images) {
      for (std::size_t c = 0; c < mean_.size(); ++c)
        addPlane(c, example + static_cast<std::int64_t>(c) * groups);
      count_ += static_cast<double>(groups);
      continue;
    }
    for (std::int64_t t = 0; t < groups; ++t)
      if (!mask.defined() || mask.data<float>()[n * groups + t] != 0) addStep(example + t * features);
  }
}

/// One value of each feature.
void InputMoments::addStep(const float* values) {
  count_ += 1;
  const double share = 1 / count_;
  for (std::size_t f = 0; f < mean_.size(); ++f) {
    const double away = values[f] - mean_[f];
    mean_[f] += away * share;
    squares_[f] += away * (values[f] - mean_[f]);
    smallest_[f] = std::min(smallest_[f], values[f]);
    largest_[f] = std::max(largest_[f], values[f]);
  }
}

/// The pixels of one channel of an image.
void InputMoments::addPlane(std::size_t channel, const float* values) {
  const std::span pixels(values, static_cast<std::size_t>(example_[1] * example_[2]));
  const auto count = static_cast<double>(pixels.size());
  double sum = 0, squares = 0;
  for (const float pixel : pixels) sum += pixel;
  const double mean = sum / count;
  for (const float pixel : pixels) squares += (pixel - mean) * (pixel - mean);
  const double away = mean - mean_[channel], all = count_ + count;
  mean_[channel] += away * count / all;
  squares_[channel] += squares + away * away * count_ * count / all;
  const auto [smallest, largest] = std::ranges::minmax(pixels);
  smallest_[channel] = std::min(smallest_[channel], smallest);
  largest_[channel] = std::max(largest_[channel], largest);
}

void InputMoments::requireFinite(const float* example) const {
  const std::span values(example, static_cast<std::size_t>(example_.elements()));
  const auto bad = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
  require(bad == values.end(), "example {} has the value {} at position {}, both counted from 0 in {}",
          examples_, bad == values.end() ? 0 : *bad, bad - values.begin(), example_.toString());
}

double InputMoments::deviation(std::size_t feature) const {
  const double variance = squares_[feature] / count_, mean = mean_[feature];
  // Values in [0, 1] have at most this variance, and only zeros and ones have it (Bhatia and Davis 2000).
  const bool flag = smallest_[feature] == 0 && largest_[feature] == 1 &&
                    std::abs(variance - mean * (1 - mean)) <= 1e-9 * variance;
  return flag ? 0.5 : std::sqrt(variance);
}

void InputMoments::store(NormaliseMethod method, Tensor shift, Tensor scale) const {
  require(count_ > 0, "the data set has no examples");
  const auto features = static_cast<std::int64_t>(mean_.size());
  Tensor shifts = Tensor::empty({features}), scales = Tensor::empty({features});
  for (std::size_t f = 0; f < mean_.size(); ++f) {
    const bool standardise = method == NormaliseMethod::Standardise;
    const double width = standardise ? deviation(f) : static_cast<double>(largest_[f]) - smallest_[f];
    const auto factor = static_cast<float>(1 / width);
    const bool constant = largest_[f] == smallest_[f] || !std::isfinite(factor) || factor == 0;
    shifts.data<float>()[f] = standardise ? static_cast<float>(mean_[f]) : smallest_[f];
    scales.data<float>()[f] = constant ? 1 : factor;
  }
  copy(shifts, shift);
  copy(scales, scale);
}

}  // namespace muster::detail
