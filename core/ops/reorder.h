#pragma once

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// Copies a float32 activation `x` [N, C, H, W] to `y` of the same shape in `y`'s layout, padding zero. Equal
/// layouts are copied, for any shape; if `y` is `x`, nothing is done.
/// @throws InvalidArgument if shapes differ, or for a layout other than RowMajor with a rank other than 4.
void reorder(const Tensor& x, Tensor& y, Context& context);

/// Reads a batch's features into `y`, float32 in any layout: float32 unchanged, uint8 as value / 255.
/// @throws InvalidArgument if shapes differ.
void loadFeatures(const Tensor& x, Tensor& y, Context& context);

/// Reads a batch's features into indices `y`, int64 RowMajor: int64 unchanged, uint8 widened.
/// @throws InvalidArgument if shapes differ, or for other element types.
void loadIndices(const Tensor& x, Tensor& y, Context& context);

namespace cpu {
void reorder(const Tensor& x, Tensor& y, Context& context);
void loadFeatures(const Tensor& x, Tensor& y, Context& context);
void loadIndices(const Tensor& x, Tensor& y, Context& context);
}  // namespace cpu
namespace cuda {
void reorder(const Tensor& x, Tensor& y, Context& context);
void loadFeatures(const Tensor& x, Tensor& y, Context& context);
void loadIndices(const Tensor& x, Tensor& y, Context& context);
}  // namespace cuda

}  // namespace muster
