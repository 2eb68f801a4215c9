#pragma once

#include <cstdint>

// For a file compiled for one instruction set: nothing here may include inline library functions, because the
// linker could use such a copy in the whole program.

namespace muster::cpu::pixels {

inline constexpr std::int64_t kVector = 16;    // floats in a vector
inline constexpr std::int64_t kOutputs = 5;    // most output channels of a tile of the forward pass
inline constexpr std::int64_t kMostQuads = 4;  // of output channels, in a tile of the weights' gradient

/// Sizes of a convolution. A tap is an input channel, kernel row and kernel column. `places[tap]` is where
/// its first pixel is in the copies of x (see `copyShifted`), in which the pixels under a tap are adjacent.
struct Sizes {
  std::int64_t pixels;  ///< of an output channel; also the distance between two channels
  std::int64_t taps;    ///< also the distance between the weights of two output channels
  const std::int64_t* places;
};

/// One channel of an image and its kernel.
struct Image {
  std::int64_t height, width;  ///< of the input
  std::int64_t kernelWidth, outWidth;
};

/// to[k][row][column] = x[row][column + k]: one copy of the image for each kernel column k. Also writes up to
/// kVector - 1 floats after the last copy.
void copyShiftedAvx512(const Image& image, const float* x, float* to);
/// x[row][column] = sum over k of from[k][row][column - k].
void addShiftedAvx512(const Image& image, const float* from, float* x);

/// y[o][p] = bias[o] + sum over taps of weight[o][tap] * x[places[tap] + p], for at most kOutputs channels.
/// @param bias  null: zeros.
void forwardAvx512(const Sizes& sizes, std::int64_t outputs, const float* x, const float* weight,
                   const float* bias, float* y);

/// gradX[places[tap] + p] += sum over o of weight[o][tap] * gradY[o][p], for the first `taps` taps.
void backwardDataAvx512(const Sizes& sizes, std::int64_t outputs, std::int64_t taps, const float* gradY,
                        const float* weight, float* gradX);

/// to[four pixels][output][pixel] = gradY[output][pixel] for a quad of output channels, of which there may be
/// fewer than four; the rest is zero. sums[output] = sum of gradY.
/// @param distance  between two groups of four pixels in `to`, in floats.
void packGradYAvx512(const Sizes& sizes, std::int64_t outputs, const float* gradY, std::int64_t distance,
                     float* to, float* sums);

/// Several samples, which are `x` and `packed` floats apart.
struct Samples {
  std::int64_t count, x, packed;
};
/// gradWeight[o][tap] = sum over samples and p of gradY[o][p] * x[places[tap] + p], for the first `taps` taps
/// and at most kMostQuads quads of channels. @param packed  gradY as [four pixels][quad][output][pixel].
/// @param add  add to gradWeight.
void backwardWeightsAvx512(const Sizes& sizes, const Samples& samples, std::int64_t outputs,
                           std::int64_t taps, const float* x, const float* packed, bool add,
                           float* gradWeight);

}  // namespace muster::cpu::pixels
