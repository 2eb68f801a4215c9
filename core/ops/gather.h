#pragma once

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// target[i] = source[rows[i]] for each row of the first dimension.
///
/// @param source  [M, ...] of any element type, RowMajor.
/// @param rows    int64 [N], from 0 to below M, in any order, also twice; on source's device, as `target`.
/// @param target  [N, ...] like source's rows; not its memory.
/// @throws InvalidArgument for shapes that do not fit; for a row out of range on the CPU alone, on a GPU
///         such a row is all ones in its bits (NaN, or -1). Allocates nothing; may be recorded.
void gatherRows(const Tensor& source, const Tensor& rows, Tensor& target, Context& context);

namespace cpu {
void gatherRows(const Tensor& source, const Tensor& rows, Tensor& target);
}
namespace cuda {
void gatherRows(const Tensor& source, const Tensor& rows, Tensor& target, Context& context);
}

}  // namespace muster
