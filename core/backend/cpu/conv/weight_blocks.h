#pragma once

#include <cstdint>

// Included by a file compiled for one instruction set: nothing here may include inline library functions.

namespace muster::cpu {

/// A convolution's weights in blocks of channels, the format of oneDNN's kernels: [out / block, in / block,
/// taps, block, block]. The last dimension is output channels if `outputsLast`, else input channels.
struct WeightBlocks {
  std::int64_t out, in, taps;  ///< channels are whole blocks; at most kMostTaps taps
  std::int64_t block;          ///< 8 or 16
  bool outputsLast;

  static constexpr std::int64_t kMostTaps = 64;
};

/// Blocks [begin, end) of channels.
struct BlockRange {
  std::int64_t begin, end;
};

/// Converts these blocks from [out, in, taps]. `to` begins with the first of them and has room for them
/// alone. Needs AVX2.
void toBlocksAvx2(const WeightBlocks& weights, BlockRange out, BlockRange in, const float* from, float* to);
/// The reverse, to [out, in, taps].
void fromBlocksAvx2(const WeightBlocks& weights, BlockRange out, BlockRange in, const float* from, float* to);

}  // namespace muster::cpu
