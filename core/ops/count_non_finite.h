#pragma once

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// Adds the number of elements of `x` that are NaN or infinite to `count`. Enqueued on a GPU.
/// @param x      float32 or float64, row-major.
/// @param count  float64 [1].
/// @throws InvalidArgument for another type, layout or shape, or if a tensor is not on the context's device.
void countNonFinite(const Tensor& x, Tensor& count, Context& context);

namespace cpu {
void countNonFinite(const Tensor& x, Tensor& count);
}
namespace cuda {
void countNonFinite(const Tensor& x, Tensor& count, Context& context);
}

}  // namespace muster
