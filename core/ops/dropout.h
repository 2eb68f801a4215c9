#pragma once

#include <cstdint>

#include "muster/core/base/random.h"
#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// Inverted dropout: each element is zeroed with probability `rate`, the others are divided by 1 - rate.
/// RowMajor [N, ...]; x and y may be the same memory. Element e of row n is decided by number
/// (firstExample + n) * ceil(elements of a row / 4) + e / 4, word e % 4, of `random`: zeroed where that word
/// is below floor(rate * 2^32); by the example's position in the epoch, whatever the batch and the worker.
/// The same call on the gradient is the backward pass. @throws InvalidArgument unless 0 <= rate < 1.
void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, std::int64_t firstExample,
             Context& context);

/// The same to the same bits, but the epoch and the first example's position are read where the tensors are
/// when the work is done: for steps that are recorded once and run again and again. `random`'s own epoch is
/// not looked at.
/// @param position  int64 [2] on x's device: the epoch, and the first example's position in it.
void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, const Tensor& position,
             Context& context);

namespace cpu {
void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, std::int64_t firstExample,
             Context& context);
void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, const Tensor& position,
             Context& context);
}  // namespace cpu
namespace cuda {
void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, std::int64_t firstExample,
             Context& context);
void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, const Tensor& position,
             Context& context);
}  // namespace cuda

}  // namespace muster
