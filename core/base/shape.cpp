#include "muster/core/base/shape.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "muster/core/base/error.h"

namespace muster {

Shape::Shape(std::initializer_list<std::int64_t> sizes)
    : Shape(std::span<const std::int64_t>(sizes.begin(), sizes.size())) {}

Shape::Shape(std::span<const std::int64_t> sizes) {
  require(sizes.size() <= kMaxRank, "shape: at most {} dimensions, got {}", kMaxRank, sizes.size());
  for (auto size : sizes) {
    require(size >= 0, "shape: a size cannot be negative, got {}", size);
    sizes_[rank_++] = size;
  }
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  bool isTooLarge = false;
  for (auto size : sizes()) isTooLarge |= __builtin_mul_overflow(product, size, &product);
  if (isTooLarge || product > kMaxElements) [[unlikely]]
    throw InvalidArgument(fmt::format("shape: {} is too large", toString()));
  return product;
}

std::int64_t Shape::operator[](int axis) const {
  const int index = axis < 0 ? axis + rank_ : axis;
  if (index < 0 || index >= rank_) [[unlikely]]  // the message is formatted only on failure
    throw InvalidArgument(fmt::format("shape: {} has no dimension {}", toString(), axis));
  return sizes_[index];
}

Shape Shape::prepend(std::int64_t size) const {
  if (rank_ >= kMaxRank) [[unlikely]]
    throw InvalidArgument(fmt::format("shape: {} cannot take another dimension", toString()));
  Shape result;
  result.rank_ = rank_ + 1;
  result.sizes_[0] = size;
  std::copy_n(sizes_.begin(), rank_, result.sizes_.begin() + 1);
  return result;
}

Shape Shape::dropFirst() const {
  require(rank_ > 0, "shape: a scalar has no first dimension to drop");
  return Shape(sizes().subspan(1));
}

Shape Shape::dropLast() const {
  require(rank_ > 0, "shape: a scalar has no last dimension to drop");
  return Shape(sizes().first(static_cast<std::size_t>(rank_ - 1)));
}

bool Shape::operator==(const Shape& other) const {
  return std::ranges::equal(sizes(), other.sizes());
}

std::string Shape::toString() const {
  return fmt::format("[{}]", fmt::join(sizes(), ", "));
}

}  // namespace muster
