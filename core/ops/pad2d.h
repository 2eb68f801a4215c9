#pragma once

#include "muster/core/base/size2d.h"
#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// [N, C, H, W] to [N, C, top + H + bottom, left + W + right].
/// @param padding  zeros; each at least 0.
/// @throws InvalidArgument for another rank or a negative padding.
Shape padded2d(const Shape& input, const Padding2d& padding);

/// Copies x into the middle of y, with zeros around it; float32 in any layout, the same for both.
/// @throws InvalidArgument unless y's shape is padded2d of x's.
void pad2d(const Tensor& x, const Padding2d& padding, Tensor& y, Context& context);

/// gradX = d loss / d x: the middle of gradY.
void pad2dBackward(const Tensor& gradY, const Padding2d& padding, Tensor& gradX, Context& context);

namespace cpu {
void pad2d(const Tensor& x, const Padding2d& padding, Tensor& y, Context& context);
void pad2dBackward(const Tensor& gradY, const Padding2d& padding, Tensor& gradX, Context& context);
}  // namespace cpu
namespace cuda {
void pad2d(const Tensor& x, const Padding2d& padding, Tensor& y, Context& context);
void pad2dBackward(const Tensor& gradY, const Padding2d& padding, Tensor& gradX, Context& context);
}  // namespace cuda

}  // namespace muster
