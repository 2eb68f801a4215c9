#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "muster/core/base/error.h"

namespace muster::detail {

/// The largest size or window option on any axis, larger than in any image. Products of two such numbers, and
/// sums of such products, do not overflow.
inline constexpr std::int64_t kMostExtent = (std::int64_t{1} << 31) - 1;

/// Checks sizes, kernels, strides, dilations, paddings or scales. @throws InvalidArgument naming the largest.
inline void requireExtents(std::string_view name, std::initializer_list<std::int64_t> extents) {
  const std::int64_t largest = std::max(extents);
  require(largest <= kMostExtent, "{}: a size of {} is too large, the most is {}", name, largest,
          kMostExtent);
}

}  // namespace muster::detail
