#pragma once

namespace muster::cpu {

// Included by AVX2 and by AVX-512 sources. All code is inlined, so neither gets the other's instructions.

typedef float Eight __attribute__((vector_size(32)));
typedef float EightAnywhere __attribute__((vector_size(32), aligned(4)));

/// Eight rows of eight floats, transposed in registers.
struct Square {
  Eight rows[8];

  template <typename At>
  [[gnu::always_inline]] void load(const float* from, At at) {
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) rows[k] = *reinterpret_cast<const EightAnywhere*>(from + at(k));
    transpose();
  }
  template <typename At>
  [[gnu::always_inline]] void store(float* to, At at) const {
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) *reinterpret_cast<EightAnywhere*>(to + at(k)) = rows[k];
  }

 private:
  [[gnu::always_inline]] void transpose() {
    Eight pairs[8], fours[8];
#pragma GCC unroll 4
    for (int k = 0; k < 8; k += 2) {
      pairs[k] = __builtin_shufflevector(rows[k], rows[k + 1], 0, 8, 1, 9, 4, 12, 5, 13);
      pairs[k + 1] = __builtin_shufflevector(rows[k], rows[k + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 2
    for (int k = 0; k < 8; k += 4) {
      fours[k] = __builtin_shufflevector(pairs[k], pairs[k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      fours[k + 1] = __builtin_shufflevector(pairs[k], pairs[k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
      fours[k + 2] = __builtin_shufflevector(pairs[k + 1], pairs[k + 3], 0, 1, 8, 9, 4, 5, 12, 13);
      fours[k + 3] = __builtin_shufflevector(pairs[k + 1], pairs[k + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      rows[k] = __builtin_shufflevector(fours[k], fours[k + 4], 0, 1, 2, 3, 8, 9, 10, 11);
      rows[k + 4] = __builtin_shufflevector(fours[k], fours[k + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
  }
};

}  // namespace muster::cpu
