#pragma once

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

// Sequences float32 [N, T, F] of at least one step, and masks float32 [N, T]: 1 where a step is real, 0 where
// it is padding; undefined: all are real. What padding holds never matters.

/// y = x where the step is real, zero where it is padding; x and y may be the same memory.
void maskSteps(const Tensor& x, const Tensor& mask, Tensor& y, Context& context);

/// y [N, F] = the last real step of each sequence; zero where no step is real.
void lastStepForward(const Tensor& x, const Tensor& mask, Tensor& y, Context& context);
/// gradX is overwritten: zero but at the last real steps.
void lastStepBackward(const Tensor& gradY, const Tensor& mask, Tensor& gradX, Context& context);

/// y [N, F] = the mean of each sequence's real steps, added in their order; zero where no step is real.
void meanOverTimeForward(const Tensor& x, const Tensor& mask, Tensor& y, Context& context);
/// gradX is overwritten.
void meanOverTimeBackward(const Tensor& gradY, const Tensor& mask, Tensor& gradX, Context& context);

namespace cpu {
void maskSteps(const Tensor& x, const Tensor& mask, Tensor& y, Context& context);
void lastStepForward(const Tensor& x, const Tensor& mask, Tensor& y, Context& context);
void lastStepBackward(const Tensor& gradY, const Tensor& mask, Tensor& gradX, Context& context);
void meanOverTimeForward(const Tensor& x, const Tensor& mask, Tensor& y, Context& context);
void meanOverTimeBackward(const Tensor& gradY, const Tensor& mask, Tensor& gradX, Context& context);
}  // namespace cpu
namespace cuda {
void maskSteps(const Tensor& x, const Tensor& mask, Tensor& y, Context& context);
void lastStepForward(const Tensor& x, const Tensor& mask, Tensor& y, Context& context);
void lastStepBackward(const Tensor& gradY, const Tensor& mask, Tensor& gradX, Context& context);
void meanOverTimeForward(const Tensor& x, const Tensor& mask, Tensor& y, Context& context);
void meanOverTimeBackward(const Tensor& gradY, const Tensor& mask, Tensor& gradX, Context& context);
}  // namespace cuda

}  // namespace muster
