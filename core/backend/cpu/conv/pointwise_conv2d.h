#pragma once

#include <memory>

#include "muster/core/device/context.h"
#include "muster/core/ops/conv2d.h"

namespace muster::cpu {

/// Whether `withPointwiseGradient` supports this shape on this processor, and is mostly faster there:
/// float32, kernel and stride 1, no padding, one group, and AVX2 without AVX-512.
bool pointwiseGradientSupports(const Conv2dShape& shape, const Context& context);

/// A convolution 1x1 whose weights' gradient is one matrix product over all pixels.
/// @param plan  computes the other passes, with channels-last activations.
std::unique_ptr<Conv2dPlan> withPointwiseGradient(const Conv2dShape& shape, std::unique_ptr<Conv2dPlan> plan,
                                                  Context& context);

}  // namespace muster::cpu
