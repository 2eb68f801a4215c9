#pragma once

#include <memory>

#include "muster/core/device/context.h"
#include "muster/core/ops/conv2d.h"

namespace muster::cpu {

/// Whether `planPixelConv2d` supports this shape on this processor: float32, one group, stride and dilation
/// 1, no padding, copies of a sample's input for all kernel columns of at most 512 KiB, and AVX-512.
bool pixelConv2dSupports(const Conv2dShape& shape, const Context& context);

/// A convolution of row-major activations whose vectors hold adjacent pixels, so that few lanes are wasted
/// for any batch and any number of channels. Results do not depend on the number of threads.
std::unique_ptr<Conv2dPlan> planPixelConv2d(const Conv2dShape& shape, Context& context);

}  // namespace muster::cpu
