#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "muster/core/base/error.h"
#include "muster/core/ops/detail/extents.h"

// Checks shared by convolutions and transposed convolutions, for layers and for planned sizes. Messages begin
// with `name`.

namespace muster::detail {

template <typename Convolution>
void requireWindow(std::string_view name, const Convolution& c) {
  using std::ranges::min;
  require(
      min(c.kernel) >= 1 && min(c.stride) >= 1 && min(c.dilation) >= 1 && min(c.padding) >= 0,
      "{}: kernel, stride and dilation must be at least 1 and padding at least 0, got [{}], [{}], [{}] and "
      "[{}]",
      name, fmt::join(c.kernel, ", "), fmt::join(c.stride, ", "), fmt::join(c.dilation, ", "),
      fmt::join(c.padding, ", "));
  requireExtents(name, {c.kernel[0], c.kernel[1], c.stride[0], c.stride[1], c.dilation[0], c.dilation[1],
                        c.padding[0], c.padding[1]});
  if constexpr (requires { c.outputPadding; })
    for (std::size_t i = 0; i < 2; ++i)
      require(c.outputPadding[i] >= 0 && c.outputPadding[i] < c.stride[i],
              "{}: outputPadding must be at least 0 and below the stride, got {} with stride {}", name,
              c.outputPadding[i], c.stride[i]);
}

template <typename Sizes>
void requireConvolution(std::string_view name, const Sizes& s) {
  require(s.batch > 0 && s.inChannels > 0 && s.outChannels > 0 && s.height > 0 && s.width > 0,
          "{}: expected positive sizes, got an input [{}, {}, {}, {}] and {} output channels", name, s.batch,
          s.inChannels, s.height, s.width, s.outChannels);
  requireExtents(name, {s.batch, s.inChannels, s.outChannels, s.height, s.width});
  requireWindow(name, s);
  // Libraries add these in 32 bits.
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t size = i == 0 ? s.height : s.width;
    require(
        size + 2 * s.padding[i] + s.stride[i] <= kMostExtent,
        "{}: an input of {} pixels, padding {} on each side and stride {} are too large, together at most {}",
        name, size, s.padding[i], s.stride[i], kMostExtent);
  }
  require(s.groups >= 1 && s.inChannels % s.groups == 0 && s.outChannels % s.groups == 0,
          "{}: {} groups do not divide {} input and {} output channels", name, s.groups, s.inChannels,
          s.outChannels);
}

}  // namespace muster::detail
