#pragma once

#include <cstdint>

// For files compiled for one instruction set each: nothing here may include inline library functions, because
// the linker could use such a copy in the whole program.

namespace muster::cpu::winograd {

inline constexpr std::int64_t kTile = 4;     ///< outputs of a tile in each direction
inline constexpr std::int64_t kPatch = 6;    ///< inputs of a tile in each direction
inline constexpr std::int64_t kPlaces = 36;  ///< values of a transformed tile
inline constexpr std::int64_t kTaps = 9;     ///< of the kernel
inline constexpr std::int64_t kBlock = 16;   ///< adjacent channels

/// Activations in blocks of sixteen channels, Layout::ChannelBlocks. All distances are in floats.
struct Images {
  std::int64_t height, width, blocks;

  [[gnu::always_inline]] std::int64_t channels() const { return blocks * kBlock; }
  [[gnu::always_inline]] std::int64_t row() const { return width * kBlock; }
  [[gnu::always_inline]] std::int64_t block() const { return height * row(); }
  /// The offset of a channel of an image.
  [[gnu::always_inline]] std::int64_t at(std::int64_t image, std::int64_t channel) const {
    return (image * blocks + channel / kBlock) * block() + channel % kBlock;
  }
};

/// The tiles of a convolution: [image][row][column].
struct Tiles {
  std::int64_t rows, columns;  ///< of an image
  std::int64_t padding[2];     ///< zeros before the first row and column of the input; may be negative
};

/// Some of the tiles.
struct Chunk {
  std::int64_t first, count;
};

/// A range of a chunk's tiles, or of channels.
struct Range {
  std::int64_t begin, end;
};

/// The distance between rows or places of `floats` floats: a power of two would map all to few cache sets.
[[gnu::always_inline]] inline constexpr std::int64_t apart(std::int64_t floats) {
  return floats + 16;
}

/// Pixels to prefetch: those of some channels under the outputs of a chunk.
struct Prefetch {
  const Images* images;
  const Tiles* tiles;
  Chunk chunk;
  std::int64_t from, channels;
  const float* data;
};

/// Weights in blocks of sixteen channels: [tap][summed channel][vector channel], with these distances between
/// blocks. A pass sums over input or output channels; its vectors hold the others.
struct WeightBlock {
  std::int64_t summed, vector;
  bool rotated;  ///< by 180 degrees: the last tap is first
};

/// The kernels of one instruction set.
struct Kernels {
  const char* name;
  std::int64_t group;  ///< channels computed together, a multiple of sixteen
  std::int64_t rows;   ///< rows of products computed together

  /// B^T d B of some channels of the inputs under a chunk's tiles, [place][tile][channel of all].
  void (*inputs)(const Images&, const Tiles&, const Chunk&, Range channels, const float* x, float* to);
  /// A d A^T of a group's gradients of outputs, [place][tile][channel of the group]. sums: of each tile's
  /// gradients, [tile][channel of the group].
  void (*gradients)(const Images&, const Tiles&, const Chunk&, Range channels, const float* gradY, float* to,
                    float* sums);
  /// G g G^T of the weights between some summed channels and those of a group: [place][summed][channel of the
  /// group], with `place` floats between places.
  void (*weights)(const WeightBlock&, std::int64_t summed, std::int64_t channels, const float* blocked,
                  std::int64_t place, float* to);
  /// The other way: the weights' gradients G^T g G.
  void (*weightGradients)(const WeightBlock&, std::int64_t summed, std::int64_t channels,
                          const float* gradients, std::int64_t place, float* blocked);
  /// Products of the inputs with a group's weights at each place: [place][tile][channel of the group].
  /// Meanwhile prefetches the pixels that are read and written next.
  void (*products)(const Chunk&, std::int64_t summed, std::int64_t channels, const float* inputs,
                   const float* weights, float* to, const Prefetch& read, const Prefetch& written);
  /// Products of the inputs with a group's gradients, summed over the chunk's tiles, for a range of `all`
  /// channels of the inputs: [place][input channel][channel of the group], with `place` floats between
  /// places.
  /// @param add  whether to add to `to` instead of overwriting it.
  void (*weightProducts)(const Chunk&, std::int64_t all, Range range, std::int64_t channels,
                         const float* inputs, const float* gradients, bool add, std::int64_t place,
                         float* to);
  /// A^T m A of products: the outputs of a group, which begins with channel `from`. bias: of the group, or
  /// null.
  void (*outputs)(const Images&, const Tiles&, const Chunk&, std::int64_t from, std::int64_t channels,
                  const float* products, const float* bias, float* y);
};

const Kernels& avx512Kernels();
const Kernels& avx2Kernels();

}  // namespace muster::cpu::winograd
