#pragma once

#include <cstdint>

// Multiplications and additions of a layer, for shares of a machine's peak.

namespace muster::bench {

/// A product of `rows` rows with a matrix [in, out].
inline double product(std::int64_t in, std::int64_t out, std::int64_t rows = 1) {
  return 2.0 * static_cast<double>(in * out * rows);
}

/// A square convolution to an image of `size` x `size`.
inline double convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t size) {
  return product(in * kernel * kernel, out, size * size);
}

}  // namespace muster::bench
