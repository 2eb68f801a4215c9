#pragma once

#include <cstdint>
#include <span>

#include "muster/core/ops/conv2d.h"

namespace muster::cuda {

/// Which implementation was the fastest for a convolution, forward and its gradients together (in a network's
/// first layer without that of the input), on GPUs of one compute capability.
struct MeasuredConv2d {
  int capability;  ///< 90 for 9.0
  MathMode mode;
  std::int64_t inChannels, outChannels, kernel;  ///< of a square kernel
  Conv2dChoice choice;
};

/// The measurements; device_convolutions prints its lines. Empty: on an H100 the convnet gained only 1 % by
/// padded channels, the one entry tried in a whole network.
extern const std::span<const MeasuredConv2d> kMeasuredConv2d;

/// The table's choice for a shape; Auto if it has none.
Conv2dChoice measuredChoice(std::span<const MeasuredConv2d> table, int capability, const Conv2dShape& shape,
                            MathMode mode);

}  // namespace muster::cuda
