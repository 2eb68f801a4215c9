#pragma once

#include <memory>

#include "muster/core/ops/conv2d.h"

namespace muster::cpu {

/// Whether `planBFloat16DirectConv2d` supports this kernel width on this processor.
bool bfloat16DirectConv2dSupports(std::int64_t kernelWidth);

/// As `planDirectConv2d`, for a shape that it supports, with factors rounded to bf16.
std::unique_ptr<Conv2dPlan> planBFloat16DirectConv2d(const Conv2dShape& shape, Context& context);

}  // namespace muster::cpu
