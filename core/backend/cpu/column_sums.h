#pragma once

#include <algorithm>
#include <cstdint>

namespace muster::cpu {

/// For `dispatch`. sums[f] = the sum over the rows of x [rows, columns], in order, for columns [begin, end).
template <typename Sum>
[[gnu::always_inline]] inline void sumColumns(const float* x, Sum* sums, std::int64_t rows,
                                              std::int64_t columns, std::int64_t begin, std::int64_t end) {
  std::fill(sums + begin, sums + end, Sum{0});
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t f = begin; f < end; ++f) sums[f] += x[n * columns + f];
}

}  // namespace muster::cpu
