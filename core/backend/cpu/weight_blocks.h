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

/// Converts blocks [begin, end) of output channels from [out, in, taps]. Needs AVX2.
void toBlocksAvx2(const WeightBlocks& weights, std::int64_t begin, std::int64_t end, const float* from,
                  float* to);
/// The reverse, to [out, in, taps].
void fromBlocksAvx2(const WeightBlocks& weights, std::int64_t begin, std::int64_t end, const float* from,
                    float* to);

}  // namespace muster::cpu
