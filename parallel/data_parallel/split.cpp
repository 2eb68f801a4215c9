#include "muster/parallel/data_parallel/split.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {
namespace {

/// The contiguous runs of elements of a part of a row-major tensor: one for each index of the dimensions
/// before `dim`.
struct Runs {
  Runs(const Shape& whole, int dim, Part part) {
    std::int64_t inner = 1;
    for (int i = 0; i < dim; ++i) count *= whole[i];
    for (int i = dim + 1; i < whole.rank(); ++i) inner *= whole[i];
    first = part.begin * inner;
    length = part.size * inner;
    stride = whole[dim] * inner;
  }
  std::int64_t count = 1, first = 0, length = 0, stride = 0;
};

void requirePart(const Tensor& whole, int dim, Part part) {
  if (dim >= 0 && dim < whole.shape().rank() && part.begin >= 0 && part.size >= 0 &&
      part.begin + part.size <= whole.shape()[dim])
    return;
  throw InvalidArgument(fmt::format("split: {} has no [{}, {}) along dimension {}", whole.toString(),
                                    part.begin, part.begin + part.size, dim));
}

}  // namespace

std::vector<Part> splitEvenly(std::int64_t size, std::size_t parts) {
  const auto count = static_cast<std::int64_t>(parts);
  std::vector<Part> split;
  for (std::int64_t begin = 0, i = 0; begin < size; ++i) {
    split.push_back({begin, size / count + (i < size % count ? 1 : 0)});
    begin += split.back().size;
  }
  return split;
}

Shape withSize(const Shape& shape, int dim, std::int64_t size) {
  std::array<std::int64_t, Shape::kMaxRank> sizes{};
  std::ranges::copy(shape.sizes(), sizes.begin());
  sizes.at(static_cast<std::size_t>(dim)) = size;
  return Shape(std::span<const std::int64_t>(sizes.data(), static_cast<std::size_t>(shape.rank())));
}

void scatterPart(const Tensor& whole, int dim, Part part, Tensor& shard, Context& context) {
  requirePart(whole, dim, part);
  shard.resize(withSize(whole.shape(), dim, part.size), whole.dtype());
  const Runs runs(whole.shape(), dim, part);
  const Tensor from = viewOf(whole), to = viewOf(shard);
  for (std::int64_t i = 0; i < runs.count; ++i) {
    Tensor target = to.slice(i * runs.length, {runs.length});
    copy(from.slice(i * runs.stride + runs.first, {runs.length}), target, context);
  }
}

void gatherPart(const Tensor& shard, int dim, Part part, Tensor& whole, Context& context) {
  requirePart(whole, dim, part);
  if (shard.shape() != withSize(whole.shape(), dim, part.size) || shard.dtype() != whole.dtype())
    throw InvalidArgument(fmt::format("split: {} is not [{}, {}) of {} along dimension {}", shard.toString(),
                                      part.begin, part.begin + part.size, whole.toString(), dim));
  const Runs runs(whole.shape(), dim, part);
  const Tensor from = viewOf(shard), to = viewOf(whole);
  for (std::int64_t i = 0; i < runs.count; ++i) {
    Tensor target = to.slice(i * runs.stride + runs.first, {runs.length});
    copy(from.slice(i * runs.length, {runs.length}), target, context);
  }
}

namespace {

/// Copies [rows, columns] blocks of so many bytes to [columns, rows].
void transposeBlocks(const Tensor& from, std::int64_t rows, std::int64_t columns, Tensor& into) {
  const auto* source = static_cast<const std::byte*>(from.raw());
  auto* target = static_cast<std::byte*>(into.raw());
  if (from.elements() == 0) return;
  const auto bytes = static_cast<std::int64_t>(from.bytes()) / (rows * columns);
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t r = 0; r < rows; ++r)
      std::memcpy(target + (c * rows + r) * bytes, source + (r * columns + c) * bytes,
                  static_cast<std::size_t>(bytes));
}

/// The sizes with the one at `from` moved to `to`.
Shape moved(const Shape& shape, int from, int to) {
  std::vector<std::int64_t> sizes(shape.sizes().begin(), shape.sizes().end());
  const std::int64_t size = sizes.at(static_cast<std::size_t>(from));
  sizes.erase(sizes.begin() + from);
  sizes.insert(sizes.begin() + to, size);
  return Shape(std::span<const std::int64_t>(sizes));
}

std::int64_t sizeBefore(const Shape& shape, int dim) {
  std::int64_t size = 1;
  for (int i = 0; i < dim; ++i) size *= shape[i];
  return size;
}

}  // namespace

void examplesFirst(const Tensor& from, int dim, Tensor& into) {
  into.resize(moved(from.shape(), dim, 0), from.dtype());
  transposeBlocks(from, sizeBefore(from.shape(), dim), from.shape()[dim], into);
}

void examplesAt(int dim, const Tensor& from, Tensor& into) {
  into.resize(moved(from.shape(), 0, dim), from.dtype());
  transposeBlocks(from, from.shape()[0], sizeBefore(into.shape(), dim), into);
}

}  // namespace muster
