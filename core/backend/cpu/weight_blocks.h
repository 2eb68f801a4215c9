#pragma once

#include <cstdint>

// Included by a file compiled for one instruction set: nothing here may include inline library functions.

namespace muster::cpu {

/// A convolution's weights in blocks of channels, as oneDNN's kernels take them: [out / block, in / block,
/// taps, block, block], the last but one of them input channels and the last output channels, or the other
/// way round.
struct WeightBlocks {
  std::int64_t out, in, taps;  ///< channels are whole blocks; at most kMostTaps taps
  std::int64_t block;          ///< 8 or 16
  bool outputsLast;

  static constexpr std::int64_t kMostTaps = 64;
};

/// From [out, in, taps]; blocks [begin, end) of output channels. Needs AVX2.
void toBlocksAvx2(const WeightBlocks& weights, std::int64_t begin, std::int64_t end, const float* from,
                  float* to);
/// To [out, in, taps]; likewise.
void fromBlocksAvx2(const WeightBlocks& weights, std::int64_t begin, std::int64_t end, const float* from,
                    float* to);

}  // namespace muster::cpu
