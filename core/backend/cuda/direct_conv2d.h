#pragma once

#include <memory>

#include "muster/core/ops/conv2d.h"

namespace muster::cuda {

/// Whether `planDirectConv2d` can do a shape: one group, and so few input channels that an input, its weights
/// and their sums fit a block's shared memory.
bool directConv2dSupports(const Conv2dShape& shape);

/// Our own kernels, row-major, multiplying in float32 whatever the mode; ReLU is taken over.
std::unique_ptr<Conv2dPlan> planDirectConv2d(const Conv2dShape& shape, Context& context);

}  // namespace muster::cuda
