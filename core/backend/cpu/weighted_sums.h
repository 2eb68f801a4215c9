#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "muster/core/ops/detail/finite.h"

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

/// Adds the last product and rounds the sums. @tparam kOnly  it is the only product; `sums` is not read.
/// @return the largest magnitude among the results.
template <bool kOnly, typename Out, typename T>
[[gnu::always_inline]] inline muster::detail::MagnitudeBits<Out> addLast(Out* __restrict out,
                                                                         const double* __restrict sums,
                                                                         const T* __restrict x, double weight,
                                                                         std::int64_t n) {
  muster::detail::MagnitudeBits<Out> largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (kOnly)
      out[i] = static_cast<Out>(weight * x[i]);
    else
      out[i] = static_cast<Out>(sums[i] + weight * x[i]);
    largest = std::max(largest, muster::detail::magnitudeBits(out[i]));
  }
  return largest;
}

/// Copies line by line: a memcpy of a block would become a string instruction, which is slow to start.
template <typename T>
[[gnu::always_inline]] inline void copyBlock(T* __restrict to, const T* __restrict from, std::int64_t n) {
  constexpr std::int64_t kLine = 64 / sizeof(T);
  std::int64_t i = 0;
  for (; i + kLine <= n; i += kLine) std::memcpy(to + i, from + i, kLine * sizeof(T));
  for (; i < n; ++i) to[i] = from[i];
}

}  // namespace muster::cpu
