#include "muster/core/ops/conv_transpose2d.h"

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/convolution2d.h"

namespace muster {
namespace {

/// Rows or columns of the output before padding is taken off.
std::int64_t fullSize(const ConvTranspose2dShape& s, std::int64_t size, std::size_t axis) {
  return (size - 1) * s.stride[axis] + s.dilation[axis] * (s.kernel[axis] - 1) + 1 + s.outputPadding[axis];
}

}  // namespace

Shape ConvTranspose2dShape::output() const {
  return {batch, outChannels, fullSize(*this, height, 0) - 2 * padding[0],
          fullSize(*this, width, 1) - 2 * padding[1]};
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
  detail::requireConvolution("conv_transpose2d", *this);
  const std::int64_t sizes[] = {height, width};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t full = fullSize(*this, sizes[axis], axis);
    require(full > 2 * padding[axis],
            "conv_transpose2d: padding {} leaves nothing of an output of {} rows or columns", padding[axis],
            full);
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
