#pragma once

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster::cpu {

/// Softmax over dimension 1 of [N, C] or [N, C, H, W], over the last dimension of [N, T, F], RowMajor; x and
/// y may be the same memory.
void softmaxForward(const Tensor& x, Tensor& y, Context& context);

/// gradX_c = y_c (gradY_c - sum_k gradY_k y_k); gradX and gradY may be the same memory.
void softmaxBackward(const Tensor& y, const Tensor& gradY, Tensor& gradX, Context& context);

}  // namespace muster::cpu
