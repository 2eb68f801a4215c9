#pragma once

#include <cstdint>

namespace muster::cpu {

// Float64 sums of weighted float32 or float64 elements, for `dispatch`.

/// The first product is stored, not added to 0, so a negative zero stays one.
template <typename T>
[[gnu::always_inline]] inline void multiply(double* __restrict sums, const T* __restrict x, double weight,
                                            std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] = weight * x[i];
}

template <typename T>
[[gnu::always_inline]] inline void multiplyAdd(double* __restrict sums, const T* __restrict x, double weight,
                                               std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] += weight * x[i];
}

}  // namespace muster::cpu
