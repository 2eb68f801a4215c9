#pragma once

#include <memory>

#include "muster/core/ops/conv2d.h"

namespace muster::cpu {

/// Which passes of a convolution use Winograd's algorithm F(4x4, 3x3): for a tile of 4x4 outputs it takes 36
/// multiplications instead of 144. Lavin and Gray 2016, "Fast algorithms for convolutional neural networks".
struct WinogradPasses {
  bool forward = true, backwardData = true, backwardWeights = true;
  bool operator==(const WinogradPasses&) const = default;
};

/// Whether our kernels support this shape on this processor: one group, 3x3 kernel, stride and dilation 1,
/// channels in whole blocks of sixteen, float32, and AVX2 with FMA or AVX-512.
bool winogradConv2dSupports(const Conv2dShape& shape, const Context& context);

/// A convolution of activations in blocks of channels (Layout::ChannelBlocks).
/// @param passes  the other passes are oneDNN's.
std::unique_ptr<Conv2dPlan> planWinogradConv2d(const Conv2dShape& shape, Context& context,
                                               WinogradPasses passes = {});

}  // namespace muster::cpu
