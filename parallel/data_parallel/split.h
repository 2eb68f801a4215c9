#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// A stretch of a dimension: [begin, begin + size).
struct Part {
  std::int64_t begin = 0, size = 0;
};

/// Cuts [0, size) into `parts` stretches in order, the first `size` mod `parts` of them one longer than the
/// rest; empty ones are left out, so there are `size` of them where that is less.
std::vector<Part> splitEvenly(std::int64_t size, std::size_t parts);

/// `shape` with `size` in dimension `dim`.
Shape withSize(const Shape& shape, int dim, std::int64_t size);

/// Copies `part` of `whole` along `dim` to `shard`, which is resized. Any element type; row-major.
/// @throws InvalidArgument unless `part` lies in it.
void scatterPart(const Tensor& whole, int dim, Part part, Tensor& shard, Context& context);

/// Copies `shard` to where `part` lies in `whole` along `dim`: the opposite. Shards of one `whole` may be
/// gathered by several threads at once.
/// @throws InvalidArgument unless `shard` is of that part's shape and of the element type of `whole`.
void gatherPart(const Tensor& shard, int dim, Part part, Tensor& whole, Context& context);

}  // namespace muster
