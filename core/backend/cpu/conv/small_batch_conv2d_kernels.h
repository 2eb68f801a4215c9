#pragma once

#include <cstdint>

// For a file compiled for one instruction set: nothing here may include inline library functions, because the
// linker could use such a copy in the whole program.

namespace muster::cpu::small_batch {

inline constexpr std::int64_t kVector = 8;     // floats in a vector
inline constexpr std::int64_t kGroup = 16;     // output channels whose weight gradients are computed together
inline constexpr std::int64_t kMostWidth = 5;  // of a kernel: its sums stay in registers

/// to[pixel][c] = from[pixel * stride + c] for c < channels and 0 for the others up to kGroup; sums[c] =
/// their sum over the pixels. `from` may be `to`.
void packPixelsAvx2(std::int64_t pixels, std::int64_t channels, std::int64_t stride, const float* from,
                    float* to, float* sums);

/// One input channel under one kernel row. `x` is its first pixel; `gradY` is [batch][height][width][kGroup].
struct WeightRow {
  std::int64_t batch, height, width;  ///< of gradY
  const float* x;
  std::int64_t sample, row, pixel;  ///< distances in x, in floats
  const float* gradY;
};
/// sums[k][channel] = sum of gradY * x shifted by k columns, for `vectors` (1 or 2) vectors of channels.
/// sums: [kernelWidth][kGroup]. @param kernelWidth  3 or 5.
void weightRowAvx2(const WeightRow& row, int kernelWidth, int vectors, float* sums);

/// to[pixel][lane] += sum over o of gradY[pixel][o] * weights[o][lane], for `vectors` (1 to 3) vectors of
/// lanes.
/// @param lanes  distance between rows of `weights` and of `to`.
void inputRowAvx2(std::int64_t pixels, std::int64_t outputs, std::int64_t lanes, int vectors,
                  const float* gradY, const float* weights, float* to);

}  // namespace muster::cpu::small_batch
