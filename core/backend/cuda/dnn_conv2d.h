#pragma once

#include <cstddef>
#include <memory>

#include "muster/core/ops/conv2d.h"

namespace muster::cuda {

/// cuDNN's convolution of activations in `layout`, in one math mode. Includes ReLU.
/// @param mostWorkspace  bytes; if more than the context's workspace, the plan may allocate its own.
/// @throws DeviceFailure if cuDNN has no deterministic algorithm for a pass.
std::unique_ptr<Conv2dPlan> planDnnConv2d(const Conv2dShape& shape, Layout layout, MathMode mode,
                                          std::size_t mostWorkspace, Context& context);

/// cuDNN's convolution in the best layout for shape and mode, or in the one that it supports.
std::unique_ptr<Conv2dPlan> planLibraryConv2d(const Conv2dShape& shape, Context& context);

}  // namespace muster::cuda
