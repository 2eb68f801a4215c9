#pragma once

#include <cstdint>

#include "muster/core/backend/cpu/conv/winograd_vectors.h"

namespace muster::cpu::winograd {
namespace {

/// Products of small matrices whose columns are in vectors.
template <int Lanes>
struct Products {
  using V = typename Vectors<Lanes>::V;
  static constexpr int kRows = VectorOf<Lanes>::kRows;

  static V load(const float* p) { return Vectors<Lanes>::load(p); }
  static void store(float* p, V v) { Vectors<Lanes>::store(p, v); }

  /// to [Rows, Columns * Lanes] = or += a [Rows, depth] b [depth, Columns * Lanes], with the distances
  /// between rows of a, steps of a, and rows of b and to.
  template <int Rows, int Columns, bool RowsAdjacent>
  static void multiplyTile(std::int64_t depth, const float* a, std::int64_t distance, const float* b,
                           std::int64_t rowOfB, float* to, std::int64_t rowOfTo, bool add) {
    V sums[Rows][Columns];
    for (int r = 0; r < Rows; ++r)
      for (int v = 0; v < Columns; ++v) sums[r][v] = add ? load(to + r * rowOfTo + v * Lanes) : V{};
    // One pointer for three rows: addresses may add 0, 1 or 2 times the distance. The compiler would use a
    // register for each row and has too few.
    const float* triples[(Rows + 2) / 3];
    for (int r = 0; r < Rows; r += 3) {
      triples[r / 3] = a + (RowsAdjacent ? r : r * distance);
      asm volatile("" : "+r"(triples[r / 3]));
    }
    for (std::int64_t k = 0; k < depth; ++k) {
      V factors[Columns];
#pragma GCC unroll 2
      for (int v = 0; v < Columns; ++v) factors[v] = load(b + v * Lanes);
#pragma GCC unroll 14
      for (int r = 0; r < Rows; ++r) {
        const float from = triples[r / 3][RowsAdjacent ? r % 3 : r % 3 * distance];
#pragma GCC unroll 2
        for (int v = 0; v < Columns; ++v) sums[r][v] += factors[v] * from;
      }
#pragma GCC unroll 5
      for (int r = 0; r < Rows; r += 3) triples[r / 3] += RowsAdjacent ? distance : 1;
      b += rowOfB;
    }
    for (int r = 0; r < Rows; ++r)
      for (int v = 0; v < Columns; ++v) store(to + r * rowOfTo + v * Lanes, sums[r][v]);
  }

  /// All rows. With RowsAdjacent, a is [depth, rows], `distance` apart; else [rows, depth].
  template <int Columns, bool RowsAdjacent>
  static void multiply(std::int64_t rows, std::int64_t depth, const float* a, std::int64_t distance,
                       const float* b, std::int64_t rowOfB, float* to, std::int64_t rowOfTo, bool add) {
    const auto step = [&]<int Rows>(std::int64_t r) {
      multiplyTile<Rows, Columns, RowsAdjacent>(depth, a + (RowsAdjacent ? r : r * distance), distance, b,
                                                rowOfB, to + r * rowOfTo, rowOfTo, add);
    };
    std::int64_t r = 0;
    for (; r + kRows <= rows; r += kRows) step.template operator()<kRows>(r);
    if constexpr (kRows > 8)
      for (; r + 8 <= rows; r += 8) step.template operator()<8>(r);
    for (; r + 4 <= rows; r += 4) step.template operator()<4>(r);
    for (; r < rows; ++r) step.template operator()<1>(r);
  }
};

}  // namespace
}  // namespace muster::cpu::winograd
