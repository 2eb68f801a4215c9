#pragma once

#include <memory>

#include "muster/core/ops/conv2d.h"

namespace muster::cuda {

struct DirectCall;  // kernels/direct_conv2d.h
/// A shape's sizes, as our kernels take them.
DirectCall directCallOf(const Conv2dShape& shape);

/// Whether `planDirectConv2d` supports a shape: one group, and few enough input channels that input, weights
/// and sums fit in a block's shared memory.
bool directConv2dSupports(const Conv2dShape& shape);

/// Our own kernels, row-major, with float32 products in every mode; includes ReLU.
std::unique_ptr<Conv2dPlan> planDirectConv2d(const Conv2dShape& shape, Context& context);

}  // namespace muster::cuda
