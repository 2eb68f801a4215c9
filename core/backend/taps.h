#pragma once

#include <cstdint>

#include "muster/core/ops/detail/host_device.h"

// Bilinear interpolation of pixels in one direction, for all backends.

namespace muster {

/// The two input pixels that an output pixel interpolates, and the weight of each.
struct Taps {
  std::int64_t first, second;
  float firstShare, secondShare;
};

MUSTER_HOST_DEVICE Taps tapsAt(std::int64_t size, std::int64_t factor, std::int64_t output) {
  const double at = (static_cast<double>(output) + 0.5) / static_cast<double>(factor) - 0.5;
  const double place = at > 0 ? at : 0;
  const auto first = static_cast<std::int64_t>(place);
  const std::int64_t second = first + 1 < size ? first + 1 : first;
  const auto share = static_cast<float>(place - static_cast<double>(first));
  return {first, second, 1 - share, share};
}

/// An output pixel's weight for an input pixel; at an edge both neighbours are the same pixel.
MUSTER_HOST_DEVICE float shareOf(const Taps& taps, std::int64_t input) {
  return (taps.first == input ? taps.firstShare : 0.0f) + (taps.second == input ? taps.secondShare : 0.0f);
}

/// The output pixels [begin, end) that may use an input pixel.
struct Reach {
  std::int64_t begin, end;
};

MUSTER_HOST_DEVICE Reach reachOf(std::int64_t size, std::int64_t factor, std::int64_t input) {
  const std::int64_t begin = (input - 1) * factor, end = (input + 2) * factor, all = size * factor;
  return {begin > 0 ? begin : 0, end < all ? end : all};
}

}  // namespace muster
