#pragma once

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// y = table[index]: for int64 `indices` of any shape [...] (one dimension less than a tensor's maximum) the
/// rows of `table` float32 [vocabulary, F], in y [..., F].
///
/// @param mask  float32 like the indices; where it is 0, y is zero and the index may be invalid. Undefined:
///         no position is masked.
/// @throws InvalidArgument for tensors that do not match; on the CPU for an index out of range, naming the
///         example, its position, the index and the vocabulary. On a GPU, which reports nothing to the host
///         while it works, the row of such an index is NaN, which the score shows.
void embeddingForward(const Tensor& indices, const Tensor& table, const Tensor& mask, Tensor& y,
                      Context& context);

/// gradTable[v] = the sum of gradY over the positions whose index is v, in order, for any number of threads;
/// zero if v does not occur. Overwritten. `mask` and `indices` as in the forward pass, which has checked
/// them; an index out of range is ignored.
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
