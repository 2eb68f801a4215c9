#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "muster/core/backend/cpu/conv/winograd_kernels.h"
#include "muster/core/base/shape.h"

// Not for files that are compiled for one instruction set: it includes library functions.

namespace muster::cpu::winograd {

/// Bytes of a chunk's inputs. Transformed weights up to `kSmallWeights` bytes stay in the cache during all
/// chunks of tiles, so chunks can be small. Larger weights should be read seldom, so chunks are large.
inline constexpr std::int64_t kSmallWeights = 4 << 20, kSmallChunk = 640 << 10, kLargeChunk = 5 << 20;

/// The output tiles of a pass, which a thread computes in chunks, one after the other.
struct Pass {
  Images in, out;
  Tiles tiles;
  std::int64_t count;   // number of tiles
  std::int64_t atOnce;  // tiles per chunk
  bool small;           // the transformed weights

  Pass(const Shape& input, const Shape& output, std::array<std::int64_t, 2> padding, std::int64_t rows)
      : in{input[2], input[3], input[1] / kBlock},
        out{output[2], output[3], output[1] / kBlock},
        tiles{(out.height + kTile - 1) / kTile, (out.width + kTile - 1) / kTile, {padding[0], padding[1]}},
        count(output[0] * tiles.rows * tiles.columns) {
    constexpr std::int64_t kFloat = sizeof(float);
    small = kPlaces * in.channels() * out.channels() * kFloat <= kSmallWeights;
    const std::int64_t tile = kPlaces * apart(in.channels()) * kFloat;
    const std::int64_t fit = std::max((small ? kSmallChunk : kLargeChunk) / tile, rows);
    const std::int64_t parts = (count + fit - 1) / fit, even = (count + parts - 1) / parts;
    atOnce = std::min(count, (even + rows - 1) / rows * rows);
  }

  /// Calls f(chunk, next) for the chunks of a range of the tiles; `next` is empty after the last one.
  template <typename F>
  void forEachChunk(Range some, F f) const {
    const auto from = [&](std::int64_t first) { return Chunk{first, std::min(atOnce, some.end - first)}; };
    for (Chunk chunk = from(some.begin); chunk.count > 0;) {
      const Chunk next = from(chunk.first + chunk.count);
      f(chunk, next);
      chunk = next;
    }
  }
};

}  // namespace muster::cpu::winograd
