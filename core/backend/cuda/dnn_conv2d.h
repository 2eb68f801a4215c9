#pragma once

#include <memory>

#include "muster/core/ops/conv2d.h"

namespace muster::cuda {

/// cuDNN's convolution of activations in `layout`, in one math mode. Includes ReLU.
/// If no algorithm fits the context's workspace, the plan allocates its own of at most 1 GiB.
/// @throws DeviceFailure if cuDNN has no deterministic algorithm for a pass.
std::unique_ptr<Conv2dPlan> planDnnConv2d(const Conv2dShape& shape, Layout layout, MathMode mode,
                                          Context& context);

/// cuDNN's convolution in the best layout for shape and mode, or row-major if cuDNN does not support that.
std::unique_ptr<Conv2dPlan> planLibraryConv2d(const Conv2dShape& shape, Context& context);

}  // namespace muster::cuda
