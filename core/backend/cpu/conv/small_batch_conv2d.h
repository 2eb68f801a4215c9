#pragma once

#include <memory>

#include "muster/core/device/context.h"
#include "muster/core/ops/conv2d.h"

namespace muster::cpu {

/// Whether `withSmallBatchGradients` supports this shape on this processor: float32, one group, stride and
/// dilation 1, no padding, kernel width 3 or 5, at most 4,096 pixels of output in the batch, and AVX2 without
/// AVX-512.
bool smallBatchGradientsSupport(const Conv2dShape& shape, const Context& context);

/// A plan whose gradients our kernels compute where its layouts permit: that of the weights if the input is
/// row-major or channels-last, that of the input if both are channels-last. Vectors hold channels; the last
/// one of a pixel is padded to eight, not to sixteen.
std::unique_ptr<Conv2dPlan> withSmallBatchGradients(const Conv2dShape& shape,
                                                    std::unique_ptr<Conv2dPlan> plan, Context& context);

}  // namespace muster::cpu
