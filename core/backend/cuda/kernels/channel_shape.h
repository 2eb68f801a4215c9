#pragma once

#include <cstdint>

namespace muster::cuda {

/// Values of channels: [samples, channels, pixels], or [rows, channels] with adjacent channels.
struct ChannelShape {
  std::int64_t samples, channels, pixels;  // pixels: 1 if channels are adjacent

  constexpr std::int64_t elements() const { return samples * channels * pixels; }
};

}  // namespace muster::cuda
