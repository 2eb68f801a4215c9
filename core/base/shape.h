#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "muster/core/base/standard_library.h"

namespace muster {

/// Sizes of a tensor's dimensions, outermost first; at most `kMaxRank`. A value; never allocates. A default
/// Shape has rank 0 and one element.
class Shape {
 public:
  static constexpr int kMaxRank = 6;
  /// More than any memory holds; bytes and sums of a few such sizes do not overflow.
  static constexpr std::int64_t kMaxElements = std::int64_t{1} << 56;

  Shape() = default;
  /// @throws InvalidArgument for a negative size or more than `kMaxRank` dimensions.
  Shape(std::initializer_list<std::int64_t> sizes);
  explicit Shape(std::span<const std::int64_t> sizes);

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  /// Product of all sizes; 1 for rank 0. @throws InvalidArgument for more than `kMaxElements`.
  std::int64_t elements() const;
  /// Size of dimension `axis`; negative counts from the end. @throws InvalidArgument if out of range.
  std::int64_t operator[](int axis) const;

  std::span<const std::int64_t> sizes() const { return {sizes_.data(), static_cast<std::size_t>(rank_)}; }
  const std::int64_t* begin() const { return sizes_.data(); }
  const std::int64_t* end() const { return sizes_.data() + rank_; }

  /// This shape with a first dimension `size`: [3, 4].prepend(2) is [2, 3, 4].
  Shape prepend(std::int64_t size) const;
  /// This shape without its first dimension.
  Shape dropFirst() const;
  /// This shape without its last dimension.
  Shape dropLast() const;

  bool operator==(const Shape& other) const;

  /// For example `[128, 1, 28, 28]`.
  std::string toString() const;

 private:
  std::array<std::int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

}  // namespace muster
