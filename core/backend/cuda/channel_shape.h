#pragma once

#include "muster/core/backend/cuda/kernels/channel_shape.h"
#include "muster/core/base/shape.h"
#include "muster/core/tensor/layout.h"

namespace muster::cuda {

/// The channels of [N, C, ...] in a layout, row-major or channels-last.
inline ChannelShape channelShapeOf(const Shape& shape, Layout layout) {
  const std::int64_t pixels = shape.elements() / (shape[0] * shape[1]);
  if (layout == Layout::ChannelsLast) return {shape[0] * pixels, shape[1], 1};
  return {shape[0], shape[1], pixels};
}

}  // namespace muster::cuda
