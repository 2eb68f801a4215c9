#pragma once

#include <span>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// out = inputs[0] + inputs[1] + ..., element by element: added in float64 in the order of the inputs, then
/// rounded once to the element type. The order is fixed, so the same inputs give the same bits, whatever the
/// number of threads. The sum of one input is its copy, bit for bit.
///
/// @param inputs  at least one; float32 or float64, alike in shape, element type, layout and device.
/// @param out  like the inputs, and allocated; it may be the very memory of one of them, but must not overlap
///             them in part.
/// @throws InvalidArgument naming the input that differs from inputs[0] or overlaps `out` in part; on a GPU
///         for more than 128 inputs.
/// Uses the context's threads where that pays; allocates nothing.
void sum(std::span<const Tensor> inputs, Tensor& out, Context& context);

namespace cpu {
void sum(std::span<const Tensor> inputs, Tensor& out, Context& context);
}
namespace cuda {
void sum(std::span<const Tensor> inputs, Tensor& out, Context& context);
}

}  // namespace muster
