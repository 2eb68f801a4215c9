#include "muster/core/ops/gather.h"

#include <cstring>

#include "muster/core/base/error.h"

namespace muster::cpu {

void gatherRows(const Tensor& source, const Tensor& rows, Tensor& target) {
  const std::size_t bytes =
      static_cast<std::size_t>(source.shape().dropFirst().elements()) * sizeOf(source.dtype());
  const auto* const from = static_cast<const std::byte*>(source.raw());
  auto* to = static_cast<std::byte*>(target.raw());
  for (const std::int64_t row : rows.span<std::int64_t>()) {
    if (row < 0 || row >= source.shape()[0]) [[unlikely]]
      throw InvalidArgument(fmt::format("gather: {} has no row {}", source.toString(), row));
    std::memcpy(to, from + static_cast<std::size_t>(row) * bytes, bytes);
    to += bytes;
  }
}

}  // namespace muster::cpu
