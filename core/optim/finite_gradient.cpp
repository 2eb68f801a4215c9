#include "muster/core/optim/finite_gradient.h"

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "muster/core/base/error.h"

namespace muster {
namespace {

/// Whether all are finite, by their exponents: a loop that compilers vectorise.
template <std::floating_point T>
bool allFinite(const T* x, std::int64_t n) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits exponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits bad = 0;
  for (std::int64_t i = 0; i < n; ++i) bad |= (std::bit_cast<Bits>(x[i]) & exponent) == exponent ? 1 : 0;
  return bad == 0;
}

template <std::floating_point T>
void requireFiniteSegment(const Segment& segment, const T* x) {
  const std::int64_t n = segment.shape.elements();
  if (allFinite(x, n)) return;
  std::int64_t at = 0;
  while (std::isfinite(x[at])) ++at;
  throw NonFiniteScore(
      fmt::format("the gradient of {} is not finite: element {} is {}; a lower learning rate or clipping may "
                  "help, or the "
                  "data hold a value that is not finite",
                  segment.name, at, std::isnan(x[at]) ? std::abs(x[at]) : x[at]));
}

}  // namespace

void requireFiniteGradient(const StateBlock& gradients) {
  if (!gradients.values.device().isCpu() || !gradients.segments) return;
  for (const auto& segment : gradients.segments->segments) {
    if (segment.frozen) continue;
    if (gradients.values.dtype() == DType::Float64)
      requireFiniteSegment(segment, gradients.values.data<double>() + segment.offset);
    else if (gradients.values.dtype() == DType::Float32)
      requireFiniteSegment(segment, gradients.values.data<float>() + segment.offset);
  }
}

}  // namespace muster
