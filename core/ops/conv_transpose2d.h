#pragma once

#include <cstdint>
#include <memory>

#include "muster/core/base/size2d.h"
#include "muster/core/ops/conv2d.h"

namespace muster {

/// Sizes of a transposed convolution: its forward pass is a convolution's gradient of the input.
struct ConvTranspose2dShape {
  std::int64_t batch = 1;
  std::int64_t inChannels = 1;
  std::int64_t height = 1, width = 1;  ///< of the input
  std::int64_t outChannels = 1;
  Size2d kernel{1, 1};
  Size2d stride{1, 1};
  Size2d padding{0, 0};        ///< removed from each side of the output
  Size2d outputPadding{0, 0};  ///< added at its bottom and right; below the stride
  Size2d dilation{1, 1};
  std::int64_t groups = 1;  ///< as for Conv2dShape

  Shape input() const { return {batch, inChannels, height, width}; }
  Shape weight() const { return {inChannels, outChannels / groups, kernel[0], kernel[1]}; }
  /// [N, outChannels, (H - 1) stride - 2 padding + dilation (kernel - 1) + 1 + outputPadding, ...].
  Shape output() const;
  /// The convolution from `output()` to `input()`, with the same weight.
  Conv2dShape convolution() const;
  /// @throws InvalidArgument naming the sizes if one is not positive, the groups do not divide the channels,
  ///         outputPadding is not below the stride, or the output is empty.
  void validate() const;
};

/// Plans y[n, o, s h - p + d kh, s w - p + d kw] += x[n, i, h, w] weight[i, o, kh, kw] over all positions
/// inside the output, plus bias[o]: a planned convolution with forward and backwardData exchanged.
///
/// The weight is canonical: float32 [inChannels, outChannels / groups, kernel, kernel], RowMajor.
/// @throws InvalidArgument for an invalid shape.
std::unique_ptr<Conv2dPlan> planConvTranspose2d(const ConvTranspose2dShape& shape, Context& context,
                                                Layout offered = Layout::RowMajor);

namespace cpu {
std::unique_ptr<Conv2dPlan> planConvTranspose2d(const ConvTranspose2dShape& shape, Context& context,
                                                Layout offered);
}
namespace cuda {
std::unique_ptr<Conv2dPlan> planConvTranspose2d(const ConvTranspose2dShape& shape, Context& context,
                                                Layout offered);
}

}  // namespace muster
