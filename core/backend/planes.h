#pragma once

#include <cstdint>

#include "muster/core/tensor/tensor.h"

namespace muster {

/// An activation [N, C, H, W] in any layout as `count` consecutive planes [H, W, lanes]. Operations that move
/// or mix pixels treat all lanes of a plane alike.
struct Planes {
  std::int64_t count, lanes;
};

inline Planes planesOf(const Shape& shape, Layout layout) {
  const auto blocks = [](std::int64_t n) { return (n + kLayoutBlock - 1) / kLayoutBlock; };
  switch (layout) {
    case Layout::RowMajor:
      return {shape[0] * shape[1], 1};
    case Layout::ChannelsLast:
      return {shape[0], shape[1]};
    case Layout::ChannelBlocks:
      return {shape[0] * blocks(shape[1]), kLayoutBlock};
    case Layout::SampleBlocks:
      return {blocks(shape[0]) * shape[1], kLayoutBlock};
  }
  return {0, 0};
}

}  // namespace muster
