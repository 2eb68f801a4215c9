#pragma once

#include <cstdint>
#include <span>

#include "muster/core/ops/conv2d.h"

namespace muster::cuda {

/// Which implementation was the fastest for a convolution, forward and both gradients together, on GPUs of
/// one compute capability.
struct MeasuredConv2d {
  int capability;  ///< 90 for 9.0
  MathMode mode;
  std::int64_t inChannels, outChannels, kernel;  ///< of a square kernel
  Conv2dChoice choice;
};

/// What was measured; device_convolutions prints lines for it. Empty: no GPU has been measured yet.
extern const std::span<const MeasuredConv2d> kMeasuredConv2d;

/// Auto if the table has nothing for the shape.
Conv2dChoice measuredChoice(std::span<const MeasuredConv2d> table, int capability, const Conv2dShape& shape,
                            MathMode mode);

}  // namespace muster::cuda
