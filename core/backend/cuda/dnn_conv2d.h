#pragma once

#include <cstddef>
#include <memory>

#include "muster/core/ops/conv2d.h"

namespace muster::cuda {

/// cuDNN's convolution of activations in `layout`, in one math mode. ReLU is taken over.
/// @param mostWorkspace  bytes; where it is more than the context's, the plan may have a workspace of its
/// own.
/// @throws DeviceFailure where cuDNN has no deterministic algorithm for one of the passes.
std::unique_ptr<Conv2dPlan> planDnnConv2d(const Conv2dShape& shape, Layout layout, MathMode mode,
                                          std::size_t mostWorkspace, Context& context);

/// cuDNN's in the layout that suits shape and mode, or in what it has.
std::unique_ptr<Conv2dPlan> planLibraryConv2d(const Conv2dShape& shape, Context& context);

}  // namespace muster::cuda
