#pragma once

#include "muster/core/backend/cpu/conv/winograd_kernels.h"
#include "muster/core/backend/cpu/conv/winograd_products.h"
#include "muster/core/backend/cpu/conv/winograd_transforms.h"

// The kernels as templates over the vector width; the file of each instruction set includes them once.
// Everything is in an unnamed namespace, so each file keeps its own code.

namespace muster::cpu::winograd {
namespace {

template <int Lanes>
struct KernelsOf {
  using V = typename Vectors<Lanes>::V;
  using Transform = Transforms<Lanes>;
  using Product = Products<Lanes>;
  static constexpr int kVectors = 2;  // vectors per group
  static constexpr std::int64_t kGroup = kVectors * Lanes;

  static V load(const float* p) { return Vectors<Lanes>::load(p); }
  static void store(float* p, V v) { Vectors<Lanes>::store(p, v); }

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
                    Transform::template both<kPatch, kPatch>(patch, transformed, Transform::toInputs);
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
                    Transform::template both<kTile, kPatch>(tile, transformed, Transform::toGradients);
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
        Transform::template both<3, kPatch>(taps, transformed, Transform::toWeights);
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
        Transform::template both<kPatch, 3>(sums, taps, Transform::toWeightGradients);
        float* w = blocked + at(block, s, v);
        for (int k = 0; k < kTaps; ++k) store(w + tapAt(block, k) * kBlock * kBlock, taps[k / 3][k % 3]);
      }
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
      channels == kGroup
          ? Product::template multiply<kVectors, false>(rows, summed, a, tile, b, channels, c, channels,
                                                        false)
          : Product::template multiply<1, false>(rows, summed, a, tile, b, channels, c, channels, false);
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
      channels == kGroup
          ? Product::template multiply<kVectors, true>(rows, chunk.count, a, tile, b, channels, c, channels,
                                                       add)
          : Product::template multiply<1, true>(rows, chunk.count, a, tile, b, channels, c, channels, add);
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
                    Transform::template both<kPatch, kTile>(sums, tile, Transform::toOutputs);
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
    return {name,    kGroup,          Product::kRows, inputs,         gradients,
            weights, weightGradients, products,       weightProducts, outputs};
  }
};

}  // namespace
}  // namespace muster::cpu::winograd
