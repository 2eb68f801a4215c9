#include "muster/parallel/data_parallel/split.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {
namespace {

std::int64_t sizeBefore(const Shape& shape, int dim) {
  std::int64_t size = 1;
  for (int i = 0; i < dim; ++i) size *= shape[i];
  return size;
}

/// Calls `use` with each run of adjacent elements of a part, as a view of the whole tensor and one of the
/// shard: one run for each index of the dimensions before `dim`.
template <typename Use>
void eachRun(const Tensor& whole, int dim, Part part, const Tensor& shard, Use use) {
  const std::int64_t count = sizeBefore(whole.shape(), dim);
  if (shard.elements() == 0) return;
  const std::int64_t length = shard.elements() / count, stride = whole.elements() / count;
  const std::int64_t first = length / part.size * part.begin;
  for (std::int64_t i = 0; i < count; ++i)
    use(whole.slice(i * stride + first, {length}), shard.slice(i * length, {length}));
}

void requirePart(const Tensor& whole, int dim, Part part) {
  if (dim >= 0 && dim < whole.shape().rank() && part.begin >= 0 && part.size >= 0 &&
      part.begin + part.size <= whole.shape()[dim])
    return;
  throw InvalidArgument(fmt::format("split: {} has no [{}, {}) along dimension {}", whole.toString(),
                                    part.begin, part.begin + part.size, dim));
}

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
  eachRun(viewOf(whole), dim, part, viewOf(shard),
          [&](const Tensor& from, Tensor to) { copy(from, to, context); });
}

void gatherPart(const Tensor& shard, int dim, Part part, Tensor& whole, Context& context) {
  requirePart(whole, dim, part);
  if (shard.shape() != withSize(whole.shape(), dim, part.size) || shard.dtype() != whole.dtype())
    throw InvalidArgument(fmt::format("split: {} is not [{}, {}) of {} along dimension {}", shard.toString(),
                                      part.begin, part.begin + part.size, whole.toString(), dim));
  eachRun(viewOf(whole), dim, part, viewOf(shard),
          [&](Tensor to, const Tensor& from) { copy(from, to, context); });
}

void moveExamples(const Tensor& from, int at, int to, Tensor& into) {
  std::vector<std::int64_t> sizes(from.shape().begin(), from.shape().end());
  const std::int64_t examples = sizes.at(static_cast<std::size_t>(at));
  sizes.erase(sizes.begin() + at);
  sizes.insert(sizes.begin() + to, examples);
  into.resize(Shape(std::span<const std::int64_t>(sizes)), from.dtype());
  if (at > 0)
    transposeBlocks(from, sizeBefore(from.shape(), at), examples, into);
  else
    transposeBlocks(from, examples, sizeBefore(into.shape(), to), into);
}

}  // namespace muster
