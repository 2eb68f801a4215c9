#pragma once

#include "muster/core/backend/cpu/conv/winograd_vectors.h"

// Note [Winograd's algorithm]
// F(4x4, 3x3), Lavin and Gray 2016: y = A^T [(G g G^T) * (B^T d B)] A. A polynomial of degree 5 is computed
// from its values at the points 0, a, -a, b, -b and infinity. With a = 5/8 and b = 3/2 errors are half those
// of the usual 1 and 2 (an experiment with random numbers); all constants below follow from a and b.

namespace muster::cpu::winograd {
namespace {

constexpr float kA = 0.625f, kB = 1.5f;
constexpr float kA2 = kA * kA, kB2 = kB * kB, kA3 = kA2 * kA, kB3 = kB2 * kB;
constexpr double kExactA2 = 0.625 * 0.625, kExactB2 = 1.5 * 1.5;
constexpr float kG0 = static_cast<float>(1 / (kExactA2 * kExactB2));
constexpr float kGA = static_cast<float>(1 / (2 * kExactA2 * (kExactA2 - kExactB2)));
constexpr float kGB = static_cast<float>(1 / (2 * kExactB2 * (kExactB2 - kExactA2)));

/// The transformations of Note [Winograd's algorithm], of one row or column, and of both.
template <int Lanes>
struct Transforms {
  using V = typename Vectors<Lanes>::V;

  /// B^T d: six inputs to six places.
  [[gnu::always_inline]] static void toInputs(const V* d, V* to) {
    to[0] = d[4] - (kA2 + kB2) * d[2] + (kA2 * kB2) * d[0];
    const V evenA = d[4] - kB2 * d[2], oddA = kA * d[3] - (kA * kB2) * d[1];
    to[1] = evenA + oddA;
    to[2] = evenA - oddA;
    const V evenB = d[4] - kA2 * d[2], oddB = kB * d[3] - (kB * kA2) * d[1];
    to[3] = evenB + oddB;
    to[4] = evenB - oddB;
    to[5] = d[5] - (kA2 + kB2) * d[3] + (kA2 * kB2) * d[1];
  }
  /// A^T m: six places to four outputs.
  [[gnu::always_inline]] static void toOutputs(const V* m, V* to) {
    const V sumA = m[1] + m[2], differenceA = m[1] - m[2], sumB = m[3] + m[4], differenceB = m[3] - m[4];
    to[0] = m[0] + sumA + sumB;
    to[1] = kA * differenceA + kB * differenceB;
    to[2] = kA2 * sumA + kB2 * sumB;
    to[3] = kA3 * differenceA + kB3 * differenceB + m[5];
  }
  /// A y: gradients of four outputs to six places.
  [[gnu::always_inline]] static void toGradients(const V* y, V* to) {
    to[0] = y[0];
    const V evenA = y[0] + kA2 * y[2], oddA = kA * y[1] + kA3 * y[3];
    to[1] = evenA + oddA;
    to[2] = evenA - oddA;
    const V evenB = y[0] + kB2 * y[2], oddB = kB * y[1] + kB3 * y[3];
    to[3] = evenB + oddB;
    to[4] = evenB - oddB;
    to[5] = y[3];
  }
  /// G g: three weights to six places.
  [[gnu::always_inline]] static void toWeights(const V* g, V* to) {
    to[0] = kG0 * g[0];
    const V evenA = kGA * g[0] + (kGA * kA2) * g[2], oddA = (kGA * kA) * g[1];
    to[1] = evenA + oddA;
    to[2] = evenA - oddA;
    const V evenB = kGB * g[0] + (kGB * kB2) * g[2], oddB = (kGB * kB) * g[1];
    to[3] = evenB + oddB;
    to[4] = evenB - oddB;
    to[5] = g[2];
  }
  /// G^T s: six places to gradients of three weights.
  [[gnu::always_inline]] static void toWeightGradients(const V* s, V* to) {
    const V sumA = s[1] + s[2], sumB = s[3] + s[4];
    to[0] = kG0 * s[0] + kGA * sumA + kGB * sumB;
    to[1] = (kGA * kA) * (s[1] - s[2]) + (kGB * kB) * (s[3] - s[4]);
    to[2] = (kGA * kA2) * sumA + (kGB * kB2) * sumB + s[5];
  }

  /// Transforms columns, then rows: [From][From] to [To][To].
  template <int From, int To, typename Transform>
  [[gnu::always_inline]] static void both(const V (*from)[From], V (*to)[To], Transform transform) {
    V columns[From][To];  // [column][row], transformed down the columns
#pragma GCC unroll 6
    for (int c = 0; c < From; ++c) {
      V column[From];
#pragma GCC unroll 6
      for (int r = 0; r < From; ++r) column[r] = from[r][c];
      transform(column, columns[c]);
    }
#pragma GCC unroll 6
    for (int r = 0; r < To; ++r) {
      V row[From];
#pragma GCC unroll 6
      for (int c = 0; c < From; ++c) row[c] = columns[c][r];
      transform(row, to[r]);
    }
  }
};

}  // namespace
}  // namespace muster::cpu::winograd
