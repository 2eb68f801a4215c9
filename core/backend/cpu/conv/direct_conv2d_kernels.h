#pragma once

#include <cstdint>

// For files compiled for one instruction set each: nothing here may include inline library functions, because
// the linker could use such a copy in the whole program.

namespace muster::cpu::direct {

/// Sizes of one block of sixteen samples, whose planes are [channel][row][column][16]. Input planes include
/// the padding. Kernels skip whole vectors of samples from `samples` on, and leave these in y and gradX as
/// they are. In gradY and x they are zero; planeSum adds them.
struct BlockShape {
  std::int64_t inChannels, inHeight, inWidth;
  std::int64_t outChannels, outHeight, outWidth;
  std::int64_t kernelHeight;
  std::int64_t samples = 16;
};

/// The kernels of one instruction set for one kernel width. Weights are packed in groups of channels, see
/// `packForward` and `packBackward` of DirectPlan; the last group may be smaller.
struct Kernels {
  std::int64_t forwardGroup;   ///< output channels computed together
  std::int64_t backwardGroup;  ///< input channels computed together
  std::int64_t weightGroup;    ///< output channels whose weight gradients are computed together

  /// y = conv(x) + bias for `outputs` channels of one group. packed: [in][ky][kx][outputs].
  void (*forward)(const BlockShape& s, int outputs, const float* x, const float* packed, const float* bias,
                  float* y);
  /// gradX += contributions of output row `row` to `inputs` channels of one group. gradYRow:
  /// [out][column][16]. packed: [ky][out][inputs][kx]. gradX: the group's first channel.
  void (*backwardData)(const BlockShape& s, int inputs, std::int64_t row, const float* gradYRow,
                       const float* packed, float* gradX);
  /// gradWeight[o][kx] += one kernel row's gradients for `outputs` channels. x: one channel's plane from the
  /// first row under the kernel row; gradY: the group's first channel; rows of gradWeight are `stride` floats
  /// apart.
  void (*backwardWeights)(const BlockShape& s, int outputs, const float* x, const float* gradY,
                          float* gradWeight, std::int64_t stride);
  /// Sum of one channel's plane over positions and samples.
  float (*planeSum)(const BlockShape& s, const float* gradY);
};

/// @return nullptr if the kernel width is not supported.
const Kernels* avx512Kernels(std::int64_t kernelWidth);
const Kernels* avx2Kernels(std::int64_t kernelWidth);
/// Elements of x, gradY and the weights are pairs of bf16, and both products are added; planeSum takes
/// float32. Needs AVX-512 BF16.
const Kernels* bfloat16Kernels(std::int64_t kernelWidth);

/// to[i] = the pair of first[i] and second[i], each rounded to the nearest bf16, for i < elements, a multiple
/// of sixteen. @param second  null: zeros. Needs AVX-512 BF16.
void packBFloat16(const float* first, const float* second, float* to, std::int64_t elements);

}  // namespace muster::cpu::direct
