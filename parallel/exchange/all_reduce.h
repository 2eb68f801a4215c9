#pragma once

#include <span>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// Replaces every tensor's elements by the sum of all tensors, element by element: afterwards all hold the
/// same bits. For training loops of your own, to add up the gradients that each device has computed
/// (examples/docs/loops.md). Writes into the memory that the tensors view; handles stay as they are.
///
/// @param tensors  at least one, [device]; float32 or float64, alike in shape, element type and layout, no
///                 two sharing memory. No other thread may use them meanwhile.
/// @param context  computes the sums, on its threads if that is faster.
/// @throws InvalidArgument naming the tensors that differ or share memory.
/// Adds in float64 in the order of the tensors and rounds once (see `sum`): same inputs, same bits, on any
/// devices. If all tensors are on the context's device, the sum is enqueued there (on the CPU it is done on
/// return), and nothing is allocated. Otherwise the tensors are copied to the context's device, and the sum
/// is done on return; work enqueued on other devices must be complete (`Context::synchronize`).
void allReduce(std::span<const Tensor> tensors, Context& context);

}  // namespace muster
