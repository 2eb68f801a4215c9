#pragma once

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// y += a x, element by element: computed in float64, rounded once to the element type.
///
/// @param y  float32 or float64.
/// @param x  equal to y in shape, element type, layout and device; may be the memory of y, but must not
///         overlap it in part.
/// @throws InvalidArgument if they differ.
/// Uses the context's threads if that is faster; allocates nothing.
void axpy(double a, const Tensor& x, Tensor& y, Context& context);

namespace cpu {
void axpy(double a, const Tensor& x, Tensor& y, Context& context);
}
namespace cuda {
void axpy(double a, const Tensor& x, Tensor& y, Context& context);
}

}  // namespace muster
