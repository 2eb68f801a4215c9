#pragma once

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// Writes float32 activation `x` [N, C, H, W] into `y` of the same shape in `y`'s layout, padding zero. Equal
/// layouts copy, for any shape; nothing is done where `y` is `x` itself.
/// @throws InvalidArgument if shapes differ, or if a layout other than RowMajor is asked for another rank
/// than 4.
void reorder(const Tensor& x, Tensor& y, Context& context);

/// Reads a batch's features into `y`, float32 in any layout: float32 as they are, uint8 as value/255.
/// @throws InvalidArgument if shapes differ.
void loadFeatures(const Tensor& x, Tensor& y, Context& context);

/// Reads a batch's features into indices `y`, int64 RowMajor: int64 as they are, uint8 widened.
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
