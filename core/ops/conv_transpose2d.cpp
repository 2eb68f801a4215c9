#include "muster/core/ops/conv_transpose2d.h"

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {

Shape ConvTranspose2dShape::output() const {
  const auto size = [&](std::int64_t in, std::size_t axis) {
    return (in - 1) * stride[axis] - 2 * padding[axis] + dilation[axis] * (kernel[axis] - 1) + 1 +
           outputPadding[axis];
  };
  return {batch, outChannels, size(height, 0), size(width, 1)};
}

Conv2dShape ConvTranspose2dShape::convolution() const {
  const Shape from = output();
  return {.batch = batch,
          .inChannels = outChannels,
          .height = from[2],
          .width = from[3],
          .outChannels = inChannels,
          .kernel = kernel,
          .stride = stride,
          .padding = padding,
          .dilation = dilation,
          .groups = groups};
}

void ConvTranspose2dShape::validate() const {
  require(batch > 0 && inChannels > 0 && outChannels > 0 && height > 0 && width > 0,
          "conv_transpose2d: expected positive sizes, got an input [{}, {}, {}, {}] and {} output channels",
          batch, inChannels, height, width, outChannels);
  require(groups >= 1 && inChannels % groups == 0 && outChannels % groups == 0,
          "conv_transpose2d: {} groups do not divide {} input and {} output channels", groups, inChannels,
          outChannels);
  const std::int64_t sizes[] = {height, width};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    require(kernel[axis] >= 1 && stride[axis] >= 1 && dilation[axis] >= 1 && padding[axis] >= 0,
            "conv_transpose2d: expected kernel, stride and dilation of at least 1 and padding of at least 0, "
            "got {}, {}, {} and {}",
            kernel[axis], stride[axis], dilation[axis], padding[axis]);
    require(outputPadding[axis] >= 0 && outputPadding[axis] < stride[axis],
            "conv_transpose2d: outputPadding must be at least 0 and below the stride, got {} with stride {}",
            outputPadding[axis], stride[axis]);
    require((sizes[axis] - 1) * stride[axis] + dilation[axis] * (kernel[axis] - 1) + 1 + outputPadding[axis] >
                2 * padding[axis],
            "conv_transpose2d: padding {} leaves nothing of an output of {} rows or columns", padding[axis],
            (sizes[axis] - 1) * stride[axis] + dilation[axis] * (kernel[axis] - 1) + 1 + outputPadding[axis]);
  }
}

std::unique_ptr<Conv2dPlan> planConvTranspose2d(const ConvTranspose2dShape& shape, Context& context,
                                                Layout offered) {
  shape.validate();
  if (context.device().isCpu()) return cpu::planConvTranspose2d(shape, context, offered);
  if constexpr (kCudaBuilt) return cuda::planConvTranspose2d(shape, context, offered);
  throw DeviceUnavailable("conv_transpose2d: this build has no CUDA");
}

}  // namespace muster
