#pragma once

#include <cstdint>

namespace muster::cuda {

/// Values of channels: [samples, channels, pixels], or [rows, channels] with the channels side by side.
struct ChannelShape {
  std::int64_t samples, channels, pixels;  // pixels: 1 where the channels lie side by side

  constexpr std::int64_t elements() const { return samples * channels * pixels; }
};

}  // namespace muster::cuda
