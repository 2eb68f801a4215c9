#pragma once

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

// Sequences are float32 [N, T, F] of at least one step, masks float32 [N, T]: 1 for a real step, 0 for
// padding; undefined: all are real. The contents of padding never matter.

/// y = x for real steps, zero for padding; x and y may be the same memory.
void maskSteps(const Tensor& x, const Tensor& mask, Tensor& y, Context& context);

/// y [N, F] = the last real step of each sequence; zero if no step is real.
void lastStepForward(const Tensor& x, const Tensor& mask, Tensor& y, Context& context);
/// gradX is overwritten: zero except at the last real steps.
void lastStepBackward(const Tensor& gradY, const Tensor& mask, Tensor& gradX, Context& context);

/// y [N, F] = the mean of each sequence's real steps, added in order; zero if no step is real.
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
