#pragma once

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// target[i] = source[rows[i]] for each row of the first dimension.
///
/// @param source  [M, ...] of any element type, RowMajor.
/// @param rows    int64 [N], each from 0 to below M, in any order, possibly repeated; on source's device, as
///         `target`.
/// @param target  [N, ...] like source's rows; not source's memory.
/// @throws InvalidArgument for shapes that do not match; on the CPU for a row out of range. On a GPU all bits
///         of such a row become 1 (NaN, or -1). Allocates nothing; may be recorded.
void gatherRows(const Tensor& source, const Tensor& rows, Tensor& target, Context& context);

namespace cpu {
void gatherRows(const Tensor& source, const Tensor& rows, Tensor& target);
}
namespace cuda {
void gatherRows(const Tensor& source, const Tensor& rows, Tensor& target, Context& context);
}

}  // namespace muster
