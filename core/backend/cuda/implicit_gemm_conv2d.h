#pragma once

#include <memory>

#include "muster/core/ops/conv2d.h"

namespace muster::cuda {

/// Whether `planImplicitGemmConv2d` supports a shape in the context's math mode on its GPU: TF32 or bf16, one
/// group, stride 1, at most 64 output channels, and an image, its gradient and the weights that fit in a
/// block's shared memory.
bool implicitGemmConv2dSupports(const Conv2dShape& shape, Context& context);

/// Our own kernels on tensor cores for small images, row-major; includes ReLU. Factors are rounded to TF32 in
/// both modes, and sums are float32.
std::unique_ptr<Conv2dPlan> planImplicitGemmConv2d(const Conv2dShape& shape, Context& context);

}  // namespace muster::cuda
