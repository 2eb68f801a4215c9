#pragma once

#include <cstdint>

#include "muster/core/base/random.h"
#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// Inverted dropout: each element is zeroed with probability `rate`, the others are divided by 1 - rate.
/// RowMajor [N, ...]; x and y may be the same memory. The random word of element e of row n is word e % 4 of
/// number (firstExample + n) * ceil(elements of a row / 4) + e / 4 of `random`; the element is zeroed if its
/// word is below floor(rate * 2^32). So it depends on the example's position in the epoch, not on batch or
/// worker. The same call on the gradient is the backward pass.
/// @throws InvalidArgument unless 0 <= rate < 1.
void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, std::int64_t firstExample,
             Context& context);

/// As above with the same bits, but the epoch and the first example's position are read on the device when
/// the work is done, for recorded steps. `random`'s own epoch is ignored.
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
