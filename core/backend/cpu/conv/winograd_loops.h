#pragma once

#include "muster/core/backend/cpu/conv/winograd_kernels.h"

// The kernels as templates over the vector width; the file of each instruction set includes them once.
// Everything is in an unnamed namespace, so each file keeps its own code.
//
// Note [Winograd's algorithm]
// F(4x4, 3x3), Lavin and Gray 2016: y = A^T [(G g G^T) * (B^T d B)] A. A polynomial of degree 5 is computed
// from its values at the points 0, a, -a, b, -b and infinity. With a = 5/8 and b = 3/2 errors are half those
// of the usual 1 and 2 (an experiment with random numbers); all constants below follow from a and b.

namespace muster::cpu::winograd {
namespace {

template <int Lanes>
struct VectorOf;
template <>
struct VectorOf<16> {
  typedef float type __attribute__((vector_size(64)));
  typedef float anywhere __attribute__((vector_size(64), aligned(4)));
  static constexpr int kRows = 14;  // rows of products that a tile of registers holds
};
template <>
struct VectorOf<8> {
  typedef float type __attribute__((vector_size(32)));
  typedef float anywhere __attribute__((vector_size(32), aligned(4)));
  static constexpr int kRows = 6;
};

constexpr float kA = 0.625f, kB = 1.5f;
constexpr float kA2 = kA * kA, kB2 = kB * kB, kA3 = kA2 * kA, kB3 = kB2 * kB;
constexpr double kExactA2 = 0.625 * 0.625, kExactB2 = 1.5 * 1.5;
constexpr float kG0 = static_cast<float>(1 / (kExactA2 * kExactB2));
constexpr float kGA = static_cast<float>(1 / (2 * kExactA2 * (kExactA2 - kExactB2)));
constexpr float kGB = static_cast<float>(1 / (2 * kExactB2 * (kExactB2 - kExactA2)));

template <int Lanes>
struct KernelsOf {
  using V = typename VectorOf<Lanes>::type;
  static constexpr int kVectors = 2;  // vectors per group
  static constexpr std::int64_t kGroup = kVectors * Lanes;
  static constexpr int kRows = VectorOf<Lanes>::kRows;

  using Anywhere = typename VectorOf<Lanes>::anywhere;  // unaligned: a bias may start at any parameter

  static V load(const float* p) { return *reinterpret_cast<const Anywhere*>(p); }
  static void store(float* p, V v) { *reinterpret_cast<Anywhere*>(p) = v; }

  // The transformations of one row or column.
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
  [[gnu::always_inline]] static void toOutputs(const V* m, V* to) {
    const V sumA = m[1] + m[2], differenceA = m[1] - m[2], sumB = m[3] + m[4], differenceB = m[3] - m[4];
    to[0] = m[0] + sumA + sumB;
    to[1] = kA * differenceA + kB * differenceB;
    to[2] = kA2 * sumA + kB2 * sumB;
    to[3] = kA3 * differenceA + kB3 * differenceB + m[5];
  }
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

  /// Calls f(tile in the chunk, image, row of tiles, column of tiles).
  template <typename F>
  [[gnu::always_inline]] static void forEachTile(const Tiles& tiles, const Chunk& chunk, Range range, F f) {
    const std::int64_t ofImage = tiles.rows * tiles.columns;
    std::int64_t image = (chunk.first + range.begin) / ofImage,
                 inImage = (chunk.first + range.begin) % ofImage;
    std::int64_t row = inImage / tiles.columns, column = inImage % tiles.columns;
    for (std::int64_t t = range.begin; t < range.end; ++t) {
      f(t, image, row, column);
      if (++column < tiles.columns) continue;
      column = 0;
      if (++row < tiles.rows) continue;
      row = 0;
      ++image;
    }
  }

  /// Loads a square of Size x Size pixels at (top, left); zeros outside the image.
  template <int Size>
  [[gnu::always_inline]] static void pixels(const Images& images, std::int64_t top, std::int64_t left,
                                            const float* x, V (*to)[Size]) {
    if (top >= 0 && left >= 0 && top + Size <= images.height && left + Size <= images.width) {
      const float* from = x + top * images.row() + left * kBlock;
#pragma GCC unroll 6
      for (int r = 0; r < Size; ++r)
#pragma GCC unroll 6
        for (int c = 0; c < Size; ++c) to[r][c] = load(from + r * images.row() + c * kBlock);
      return;
    }
    for (int r = 0; r < Size; ++r)
      for (int c = 0; c < Size; ++c) {
        const std::int64_t h = top + r, w = left + c;
        const bool inside = h >= 0 && h < images.height && w >= 0 && w < images.width;
        to[r][c] = inside ? load(x + h * images.row() + w * kBlock) : V{};
      }
  }

  static void inputs(const Images& images, const Tiles& tiles, const Chunk& chunk, Range channels,
                     const float* x, float* to) {
    const std::int64_t tile = apart(images.channels()), place = apart(chunk.count * tile);
    for (std::int64_t c = channels.begin; c < channels.end; c += Lanes)
      forEachTile(tiles, chunk, {0, chunk.count},
                  [&](std::int64_t t, std::int64_t image, std::int64_t row, std::int64_t column) {
                    V patch[kPatch][kPatch], transformed[kPatch][kPatch];
                    pixels<kPatch>(images, row * kTile - tiles.padding[0], column * kTile - tiles.padding[1],
                                   x + images.at(image, c), patch);
                    both<kPatch, kPatch>(patch, transformed, toInputs);
                    for (int p = 0; p < kPlaces; ++p)
                      store(to + p * place + t * tile + c, transformed[p / kPatch][p % kPatch]);
                  });
  }

  static void gradients(const Images& images, const Tiles& tiles, const Chunk& chunk, Range channels,
                        const float* gradY, float* to, float* sums) {
    const std::int64_t all = channels.end - channels.begin, place = apart(chunk.count * all);
    for (std::int64_t v = 0; v < all; v += Lanes)
      forEachTile(tiles, chunk, {0, chunk.count},
                  [&](std::int64_t t, std::int64_t image, std::int64_t row, std::int64_t column) {
                    V tile[kTile][kTile], transformed[kPatch][kPatch];
                    pixels<kTile>(images, row * kTile, column * kTile,
                                  gradY + images.at(image, channels.begin + v), tile);
                    both<kTile, kPatch>(tile, transformed, toGradients);
                    for (int p = 0; p < kPlaces; ++p)
                      store(to + p * place + t * all + v, transformed[p / kPatch][p % kPatch]);
                    V sum{};
                    for (int r = 0; r < kTile; ++r)
                      sum += (tile[r][0] + tile[r][1]) + (tile[r][2] + tile[r][3]);
                    store(sums + t * all + v, sum);
                  });
  }

  /// The offset of the weights of a summed channel and a vector of the other channels.
  static std::int64_t at(const WeightBlock& block, std::int64_t summed, std::int64_t vector) {
    return summed / kBlock * block.summed + summed % kBlock * kBlock + vector / kBlock * block.vector +
           vector % kBlock;
  }
  static int tapAt(const WeightBlock& block, int tap) {
    return block.rotated ? static_cast<int>(kTaps) - 1 - tap : tap;
  }

  static void weights(const WeightBlock& block, std::int64_t summed, std::int64_t channels,
                      const float* blocked, std::int64_t place, float* to) {
    for (std::int64_t s = 0; s < summed; ++s)
      for (std::int64_t v = 0; v < channels; v += Lanes) {
        const float* w = blocked + at(block, s, v);
        V taps[3][3], transformed[kPatch][kPatch];
        for (int k = 0; k < kTaps; ++k) taps[k / 3][k % 3] = load(w + tapAt(block, k) * kBlock * kBlock);
        both<3, kPatch>(taps, transformed, toWeights);
        for (int p = 0; p < kPlaces; ++p)
          store(to + p * place + s * channels + v, transformed[p / kPatch][p % kPatch]);
      }
  }

  static void weightGradients(const WeightBlock& block, std::int64_t summed, std::int64_t channels,
                              const float* products, std::int64_t place, float* blocked) {
    for (std::int64_t s = 0; s < summed; ++s)
      for (std::int64_t v = 0; v < channels; v += Lanes) {
        V sums[kPatch][kPatch], taps[3][3];
        for (int p = 0; p < kPlaces; ++p)
          sums[p / kPatch][p % kPatch] = load(products + p * place + s * channels + v);
        both<kPatch, 3>(sums, taps, toWeightGradients);
        float* w = blocked + at(block, s, v);
        for (int k = 0; k < kTaps; ++k) store(w + tapAt(block, k) * kBlock * kBlock, taps[k / 3][k % 3]);
      }
  }

  /// to [Rows, Vectors * Lanes] = or += a [Rows, depth] b [depth, Vectors * Lanes], with the distances
  /// between rows of a, steps of a, and rows of b and to.
  template <int Rows, int Vectors, bool RowsAdjacent>
  static void multiplyTile(std::int64_t depth, const float* a, std::int64_t distance, const float* b,
                           std::int64_t rowOfB, float* to, std::int64_t rowOfTo, bool add) {
    V sums[Rows][Vectors];
    for (int r = 0; r < Rows; ++r)
      for (int v = 0; v < Vectors; ++v) sums[r][v] = add ? load(to + r * rowOfTo + v * Lanes) : V{};
    // One pointer for three rows: addresses may add 0, 1 or 2 times the distance. The compiler would use a
    // register for each row and has too few.
    const float* triples[(Rows + 2) / 3];
    for (int r = 0; r < Rows; r += 3) {
      triples[r / 3] = a + (RowsAdjacent ? r : r * distance);
      asm volatile("" : "+r"(triples[r / 3]));
    }
    for (std::int64_t k = 0; k < depth; ++k) {
      V factors[Vectors];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) factors[v] = load(b + v * Lanes);
#pragma GCC unroll 14
      for (int r = 0; r < Rows; ++r) {
        const float from = triples[r / 3][RowsAdjacent ? r % 3 : r % 3 * distance];
#pragma GCC unroll 2
        for (int v = 0; v < Vectors; ++v) sums[r][v] += factors[v] * from;
      }
#pragma GCC unroll 5
      for (int r = 0; r < Rows; r += 3) triples[r / 3] += RowsAdjacent ? distance : 1;
      b += rowOfB;
    }
    for (int r = 0; r < Rows; ++r)
      for (int v = 0; v < Vectors; ++v) store(to + r * rowOfTo + v * Lanes, sums[r][v]);
  }

  /// All rows. With RowsAdjacent, a is [depth, rows], `distance` apart; else [rows, depth].
  template <int Vectors, bool RowsAdjacent>
  static void multiply(std::int64_t rows, std::int64_t depth, const float* a, std::int64_t distance,
                       const float* b, std::int64_t rowOfB, float* to, std::int64_t rowOfTo, bool add) {
    const auto step = [&]<int Rows>(std::int64_t r) {
      multiplyTile<Rows, Vectors, RowsAdjacent>(depth, a + (RowsAdjacent ? r : r * distance), distance, b,
                                                rowOfB, to + r * rowOfTo, rowOfTo, add);
    };
    std::int64_t r = 0;
    for (; r + kRows <= rows; r += kRows) step.template operator()<kRows>(r);
    if constexpr (kRows > 8)
      for (; r + 8 <= rows; r += 8) step.template operator()<8>(r);
    for (; r + 4 <= rows; r += 4) step.template operator()<4>(r);
    for (; r < rows; ++r) step.template operator()<1>(r);
  }

  /// Prefetches one of `parts` parts of the pixels.
  template <int Write>
  static void prefetch(const Prefetch& soon, std::int64_t part, std::int64_t parts) {
    const Images& images = *soon.images;
    const std::int64_t begin = soon.chunk.count * part / parts, end = soon.chunk.count * (part + 1) / parts;
    forEachTile(*soon.tiles, soon.chunk, {begin, end},
                [&](std::int64_t, std::int64_t image, std::int64_t row, std::int64_t column) {
                  const std::int64_t top = row * kTile, left = column * kTile;
                  for (std::int64_t c = soon.from; c < soon.from + soon.channels; c += kBlock) {
                    const float* data = soon.data + images.at(image, c);
                    for (std::int64_t h = top; h < top + kTile && h < images.height; ++h)
                      for (std::int64_t w = left; w < left + kTile && w < images.width; ++w)
                        __builtin_prefetch(data + h * images.row() + w * kBlock, Write, 2);
                  }
                });
  }

  static void products(const Chunk& chunk, std::int64_t summed, std::int64_t channels, const float* inputs,
                       const float* weights, float* to, const Prefetch& read, const Prefetch& written) {
    const std::int64_t tile = apart(summed), rows = chunk.count;
    for (std::int64_t p = 0; p < kPlaces; ++p) {
      prefetch<0>(read, p, kPlaces);
      prefetch<1>(written, p, kPlaces);
      const float* a = inputs + p * apart(rows * tile);
      const float* b = weights + p * apart(summed * channels);
      float* c = to + p * apart(rows * channels);
      channels == kGroup ? multiply<kVectors, false>(rows, summed, a, tile, b, channels, c, channels, false)
                         : multiply<1, false>(rows, summed, a, tile, b, channels, c, channels, false);
    }
  }

  static void weightProducts(const Chunk& chunk, std::int64_t all, Range range, std::int64_t channels,
                             const float* inputs, const float* gradients, bool add, std::int64_t place,
                             float* to) {
    const std::int64_t tile = apart(all), rows = range.end - range.begin;
    for (std::int64_t p = 0; p < kPlaces; ++p) {
      const float* a = inputs + p * apart(chunk.count * tile) + range.begin;
      const float* b = gradients + p * apart(chunk.count * channels);
      float* c = to + p * place;
      channels == kGroup ? multiply<kVectors, true>(rows, chunk.count, a, tile, b, channels, c, channels, add)
                         : multiply<1, true>(rows, chunk.count, a, tile, b, channels, c, channels, add);
    }
  }

  static void outputs(const Images& images, const Tiles& tiles, const Chunk& chunk, std::int64_t from,
                      std::int64_t channels, const float* products, const float* bias, float* y) {
    for (std::int64_t v = 0; v < channels; v += Lanes) {
      const V added = bias ? load(bias + v) : V{};
      forEachTile(tiles, chunk, {0, chunk.count},
                  [&](std::int64_t t, std::int64_t image, std::int64_t row, std::int64_t column) {
                    V sums[kPatch][kPatch], tile[kTile][kTile];
#pragma GCC unroll 36
                    for (int p = 0; p < kPlaces; ++p)
                      sums[p / kPatch][p % kPatch] =
                          load(products + p * apart(chunk.count * channels) + t * channels + v);
                    both<kPatch, kTile>(sums, tile, toOutputs);
                    const std::int64_t top = row * kTile, left = column * kTile;
                    const std::int64_t height = images.height - top < kTile ? images.height - top : kTile,
                                       width = images.width - left < kTile ? images.width - left : kTile;
                    float* to = y + images.at(image, from + v) + top * images.row() + left * kBlock;
                    for (int r = 0; r < height; ++r)
                      for (int c = 0; c < width; ++c)
                        store(to + r * images.row() + c * kBlock, tile[r][c] + added);
                  });
    }
  }

  static constexpr Kernels kernels(const char* name) {
    return {name,    kGroup,          kRows,    inputs,         gradients,
            weights, weightGradients, products, weightProducts, outputs};
  }
};

}  // namespace
}  // namespace muster::cpu::winograd
