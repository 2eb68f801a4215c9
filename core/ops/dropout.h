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

namespace cpu {
void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, std::int64_t firstExample,
             Context& context);
}

}  // namespace muster
