#pragma once

#include <memory>

#include "muster/core/ops/conv2d.h"

namespace muster::cuda {

/// The shape with both channel counts rounded up for tensor cores: to multiples of 4 for TF32, of 8 for
/// bfloat16; unchanged in Float32.
Conv2dShape paddedChannels(const Conv2dShape& shape, MathMode mode);

/// cuDNN's channels-last convolution of the padded shape. It adds zeros to activations and weights, and
/// removes them from the results.
/// @throws InvalidArgument for several groups; DeviceFailure if cuDNN has no algorithm.
std::unique_ptr<Conv2dPlan> planPaddedConv2d(const Conv2dShape& shape, Context& context);

}  // namespace muster::cuda
