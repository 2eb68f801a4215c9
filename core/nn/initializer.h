#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/core/base/fields.h"
#include "muster/core/tensor/tensor.h"

namespace muster {
/// The distribution of first weights.
enum class InitKind { Xavier, He, Normal, Uniform, Zero, Constant };

template <>
struct EnumNames<InitKind> {
  static constexpr std::array<std::pair<InitKind, std::string_view>, 6> kNames{{
      {InitKind::Xavier, "xavier"},
      {InitKind::He, "he"},
      {InitKind::Normal, "normal"},
      {InitKind::Uniform, "uniform"},
      {InitKind::Zero, "zero"},
      {InitKind::Constant, "constant"},
  }};
};

/// The initial values of weights. A value: `Init::xavier()`, `Init::normal(0.01)`.
struct Init {
  InitKind kind = InitKind::Xavier;
  /// Sigma of Normal, half the width of Uniform, the value of Constant; unused by the others.
  double scale = 0;

  /// Normal with variance 2 / (fanIn + fanOut). Source: Glorot and Bengio 2010. The default.
  static Init xavier() { return {InitKind::Xavier, 0}; }
  /// Normal with variance 2 / fanIn. Source: He et al. 2015.
  static Init he() { return {InitKind::He, 0}; }
  /// Normal with this standard deviation.
  static Init normal(double sigma) { return {InitKind::Normal, sigma}; }
  /// Uniform in [-bound, bound).
  static Init uniform(double bound) { return {InitKind::Uniform, bound}; }
  static Init zero() { return {InitKind::Zero, 0}; }
  /// Every weight gets this finite value.
  static Init constant(double value) { return {InitKind::Constant, value}; }

  /// Visits the initialiser as one field called `name`.
  void field(std::string_view name, Fields& fields);
  /// @throws InvalidArgument for a scale that is negative or not finite, or a constant that is not finite.
  void validate() const;
};

/// Fills float32 `values` on the CPU: element i is number i of the stream ("init " + name) of `seed`.
void initialize(Tensor& values, const Init& init, std::int64_t fanIn, std::int64_t fanOut, std::uint64_t seed,
                std::string_view name);

}  // namespace muster
