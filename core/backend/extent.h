#pragma once

#include <cstdint>

#include "muster/core/ops/detail/host_device.h"

namespace muster {

/// A size that tensor indices are divided and multiplied by, with the index's width. For 32-bit indices a
/// division is a multiplication and a shift, prepared once; for 64-bit ones it is a plain division.
/// Source: Granlund and Montgomery 1994, "Division by invariant integers using multiplication", section 4.
class Extent {
 public:
  /// @param size  0 counts as 1 in divisions, since there is no index to divide. 32-bit indices require sizes
  ///         below 2^31.
  explicit Extent(std::int64_t size) : size_(size) {
    const std::uint64_t divisor = size > 0 ? static_cast<std::uint64_t>(size) : 1;
    if (divisor >= kEnd) return;
    while ((std::uint64_t{1} << shift_) < divisor) ++shift_;
    factor_ = static_cast<std::uint32_t>((((std::uint64_t{1} << shift_) - divisor) << 32) / divisor + 1);
  }

  /// Index is std::int32_t or std::int64_t.
  template <typename Index>
  MUSTER_HOST_DEVICE Index as() const {
    return static_cast<Index>(size_);
  }

  /// @param place  the index; not negative.
  MUSTER_HOST_DEVICE friend std::int32_t operator/(std::int32_t place, const Extent& extent) {
    const auto n = static_cast<std::uint32_t>(place);
    const auto high = static_cast<std::uint32_t>((std::uint64_t{n} * extent.factor_) >> 32);
    return static_cast<std::int32_t>((high + n) >> extent.shift_);  // the sum of two numbers below 2^31
  }
  MUSTER_HOST_DEVICE friend std::int64_t operator/(std::int64_t place, const Extent& extent) {
    return place / (extent.size_ > 0 ? extent.size_ : 1);
  }

  template <typename Index>
  MUSTER_HOST_DEVICE friend Index operator%(Index place, const Extent& extent) {
    return place - place / extent * extent;
  }
  template <typename Index>
  MUSTER_HOST_DEVICE friend Index operator*(Index factor, const Extent& extent) {
    return factor * extent.as<Index>();
  }

 private:
  static constexpr std::uint64_t kEnd = std::uint64_t{1} << 31;  // upper bound of sizes for 32-bit indices

  std::int64_t size_;
  std::uint32_t factor_ = 0, shift_ = 0;
};

}  // namespace muster
