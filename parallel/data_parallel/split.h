#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// A range of indices along a dimension: [begin, begin + size).
struct Part {
  std::int64_t begin = 0, size = 0;
};

/// Cuts [0, size) into `parts` ranges, in order. The first `size` mod `parts` of them are longer by one.
/// Empty ranges are left out, so the result has min(size, parts) of them.
std::vector<Part> splitEvenly(std::int64_t size, std::size_t parts);

/// `shape` with `size` in dimension `dim`.
Shape withSize(const Shape& shape, int dim, std::int64_t size);

/// Copies `part` of `whole` along `dim` to `shard`, which is resized. Any element type; row-major.
/// @throws InvalidArgument unless `part` is within `whole`.
void scatterPart(const Tensor& whole, int dim, Part part, Tensor& shard, Context& context);

/// Copies `shard` to `part` of `whole` along `dim`: the opposite of scatterPart. Several threads may gather
/// shards of one `whole` at once.
/// @throws InvalidArgument unless `shard` has the shape of that part and the element type of `whole`.
void gatherPart(const Tensor& shard, int dim, Part part, Tensor& whole, Context& context);

/// Moves a dimension to the front, from there, or nowhere: from 1 to 0, [T, N, F] becomes [N, T, F].
/// @param at, to  its places; one of them is 0. @param from, into  row-major, on the CPU.
void moveExamples(const Tensor& from, int at, int to, Tensor& into);

}  // namespace muster
