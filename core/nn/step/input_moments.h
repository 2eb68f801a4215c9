#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "muster/core/nn/layers/normalise.h"

namespace muster::detail {

/// Mean, variance and range of each feature of a network's input over many examples: the numbers of a
/// Normalise. In float64 and in the order of the examples, so they do not depend on the size of batches.
/// Source: Welford 1962; Chan, Golub and LeVeque 1983 for whole channels of images.
class InputMoments {
 public:
  /// @param example  [F], [T, F] or [C, H, W].
  explicit InputMoments(const Shape& example);

  /// Adds examples, float32 [N, ...] on the CPU. @param mask  float32 [N, T] of 1 and 0, the steps that
  /// count; undefined: all do.
  /// @throws InvalidArgument naming the example and the place of a value that is not finite.
  void add(const Tensor& examples, const Tensor& mask);
  /// Writes the numbers of a Normalise, float32 [F] on any device. @throws InvalidArgument if no value was
  /// added.
  void store(NormaliseMethod method, Tensor shift, Tensor scale) const;

 private:
  void addStep(const float* values);
  void addPlane(std::size_t channel, const float* values);
  void requireFinite(const float* example) const;
  /// By which a feature is divided to be standardised.
  double deviation(std::size_t feature) const;

  Shape example_;
  std::int64_t examples_ = 0;           // added so far
  double count_ = 0;                    // values of each feature
  std::vector<double> mean_, squares_;  // [feature]; squares of distances from the mean
  std::vector<float> smallest_, largest_;
};

}  // namespace muster::detail
