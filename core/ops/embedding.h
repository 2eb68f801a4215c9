#pragma once

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// y = table[index]: for int64 `indices` of any shape [...] (at most one dimension less than a tensor can
/// have) the rows of `table` float32 [vocabulary, F], in y [..., F].
///
/// @param mask  float32 like the indices; where it is 0 the index is not looked at, and y is zero. Undefined:
///              all count.
/// @throws InvalidArgument naming the example, its position, the index and the vocabulary for an index out of
/// range, and for tensors that do not fit. A GPU tells the host nothing while it works: there the row of such
/// an index is NaN, which the score shows.
void embeddingForward(const Tensor& indices, const Tensor& table, const Tensor& mask, Tensor& y,
                      Context& context);

/// gradTable[v] = the sum of gradY where the index is v, in the order of the indices, whatever the number of
/// threads; zero where v never occurs. Overwritten. `mask` and `indices` as in the forward pass, which has
/// checked them; an index out of range teaches nothing.
void embeddingBackward(const Tensor& indices, const Tensor& gradY, const Tensor& mask, Tensor& gradTable,
                       Context& context);

namespace cpu {
void embeddingForward(const Tensor& indices, const Tensor& table, const Tensor& mask, Tensor& y,
                      Context& context);
void embeddingBackward(const Tensor& indices, const Tensor& gradY, const Tensor& mask, Tensor& gradTable,
                       Context& context);
}  // namespace cpu
namespace cuda {
void embeddingForward(const Tensor& indices, const Tensor& table, const Tensor& mask, Tensor& y,
                      Context& context);
void embeddingBackward(const Tensor& indices, const Tensor& gradY, const Tensor& mask, Tensor& gradTable,
                       Context& context);
}  // namespace cuda

}  // namespace muster
