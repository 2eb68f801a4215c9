#include "muster/core/ops/embedding.h"

#include <algorithm>
#include <array>
#include <span>

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {
namespace {

/// The shape [..., F] for indices [...].
Shape withFeatures(const Shape& shape, std::int64_t features) {
  require(shape.rank() < Shape::kMaxRank, "embedding: indices {} have too many dimensions", shape.toString());
  std::array<std::int64_t, Shape::kMaxRank> sizes{};
  std::ranges::copy(shape.sizes(), sizes.begin());
  sizes[static_cast<std::size_t>(shape.rank())] = features;
  return Shape(std::span<const std::int64_t>(sizes).first(static_cast<std::size_t>(shape.rank()) + 1));
}

/// @param table  the table or its gradient.
void requireUsable(const Tensor& indices, const Tensor& table, const char* tableName, const Tensor& mask,
                   const Tensor& rows, const char* rowsName) {
  if (!indices.defined() || indices.dtype() != DType::Int64 || indices.layout() != Layout::RowMajor)
    throw InvalidArgument(fmt::format("embedding: expected int64 indices, got {}", indices.toString()));
  if (!table.defined() || table.dtype() != DType::Float32 || table.shape().rank() != 2)
    throw InvalidArgument(
        fmt::format("embedding: expected {} float32 [vocabulary, F], got {}", tableName, table.toString()));
  const Device device = table.device();
  if (indices.device() != device)
    throw InvalidArgument(fmt::format("embedding: the indices are on {}, {} on {}",
                                      indices.device().toString(), tableName, device.toString()));
  detail::expectTensor(
      "embedding", rowsName, rows,
      {withFeatures(indices.shape(), table.shape()[1]), Layout::RowMajor, DType::Float32, device});
  if (mask.defined())
    detail::expectTensor("embedding", "mask", mask,
                         {indices.shape(), Layout::RowMajor, DType::Float32, device});
}

}  // namespace

void embeddingForward(const Tensor& indices, const Tensor& table, const Tensor& mask, Tensor& y,
                      Context& context) {
  requireUsable(indices, table, "table", mask, y, "y");
  if (y.device().isCpu()) return cpu::embeddingForward(indices, table, mask, y, context);
  if constexpr (kCudaBuilt) return cuda::embeddingForward(indices, table, mask, y, context);
  throw DeviceUnavailable("embedding: this build has no CUDA");
}

void embeddingBackward(const Tensor& indices, const Tensor& gradY, const Tensor& mask, Tensor& gradTable,
                       Context& context) {
  requireUsable(indices, gradTable, "gradTable", mask, gradY, "gradY");
  if (gradY.device().isCpu()) return cpu::embeddingBackward(indices, gradY, mask, gradTable, context);
  if constexpr (kCudaBuilt) return cuda::embeddingBackward(indices, gradY, mask, gradTable, context);
  throw DeviceUnavailable("embedding: this build has no CUDA");
}

}  // namespace muster
