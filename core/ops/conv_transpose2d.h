#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "muster/core/ops/conv2d.h"

namespace muster {

/// Sizes of a transposed convolution: what a convolution does to the gradient of its input, as a forward
/// pass.
struct ConvTranspose2dShape {
  std::int64_t batch = 1;
  std::int64_t inChannels = 1;
  std::int64_t height = 1, width = 1;  ///< of the input
  std::int64_t outChannels = 1;
  std::array<std::int64_t, 2> kernel{1, 1};
  std::array<std::int64_t, 2> stride{1, 1};
  std::array<std::int64_t, 2> padding{0, 0};        ///< taken off each side of the output
  std::array<std::int64_t, 2> outputPadding{0, 0};  ///< added below and right of it; below the stride
  std::array<std::int64_t, 2> dilation{1, 1};
  std::int64_t groups = 1;  ///< as for Conv2dShape

  Shape input() const { return {batch, inChannels, height, width}; }
  Shape weight() const { return {inChannels, outChannels / groups, kernel[0], kernel[1]}; }
  /// [N, outChannels, (H - 1) stride - 2 padding + dilation (kernel - 1) + 1 + outputPadding, ...].
  Shape output() const;
  /// The convolution from `output()` to `input()`, with the same weight.
  Conv2dShape convolution() const;
  /// @throws InvalidArgument naming the sizes if one is not positive, the groups do not divide the channels,
  /// outputPadding is not below the stride, or nothing is left of the output.
  void validate() const;
};

/// Plans y[n, o, s h - p + d kh, s w - p + d kw] += x[n, i, h, w] weight[i, o, kh, kw] over all places that
/// lie in the output, plus bias[o]: a planned convolution whose forward and backwardData have changed places.
///
/// The weight is canonical: float32 [inChannels, outChannels / groups, kernel, kernel], RowMajor.
/// @throws InvalidArgument for a shape that makes no sense.
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
