#include "muster/core/backend/cuda/conv2d_table.h"

#include <algorithm>

namespace muster::cuda {

const std::span<const MeasuredConv2d> kMeasuredConv2d = {};

Conv2dChoice measuredChoice(std::span<const MeasuredConv2d> table, int capability, const Conv2dShape& shape,
                            MathMode mode) {
  const auto found = std::ranges::find_if(table, [&](const MeasuredConv2d& m) {
    return m.capability == capability && m.mode == mode && m.inChannels == shape.inChannels &&
           m.outChannels == shape.outChannels && m.kernel == shape.kernel[0] && m.kernel == shape.kernel[1];
  });
  return found == table.end() || shape.groups != 1 ? Conv2dChoice::Auto : found->choice;
}

}  // namespace muster::cuda
