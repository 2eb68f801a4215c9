#pragma once

#include <span>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// out = inputs[0] + inputs[1] + ..., element by element: added in float64 in the order of the inputs,
/// rounded once to the element type. So the bits do not depend on the number of threads. The sum of one input
/// is its copy, bit for bit.
///
/// @param inputs  at least one; float32 or float64, equal in shape, element type, layout and device.
/// @param out  like the inputs, allocated; may be the memory of an input, but must not overlap one in part.
/// @throws InvalidArgument naming the input that differs from inputs[0] or overlaps `out` in part; on a GPU
///         for more than 128 inputs.
/// Uses the context's threads if that is faster; allocates nothing.
void sum(std::span<const Tensor> inputs, Tensor& out, Context& context);

namespace cpu {
void sum(std::span<const Tensor> inputs, Tensor& out, Context& context);
}
namespace cuda {
void sum(std::span<const Tensor> inputs, Tensor& out, Context& context);
}

}  // namespace muster
