#include "muster/core/ops/conv2d.h"

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/convolution2d.h"

namespace muster {
namespace {

std::int64_t outputSize(const Conv2dShape& s, std::int64_t size, std::size_t axis) {
  const std::int64_t reach = s.dilation[axis] * (s.kernel[axis] - 1) + 1;
  return (size + 2 * s.padding[axis] - reach) / s.stride[axis] + 1;
}

}  // namespace

Shape Conv2dShape::output() const {
  return {batch, outChannels, outputSize(*this, height, 0), outputSize(*this, width, 1)};
}

void Conv2dShape::validate() const {
  detail::requireConvolution("conv2d", *this);
  const std::array<std::int64_t, 2> sizes{height, width};
  for (std::size_t axis = 0; axis < 2; ++axis)
    require(dilation[axis] * (kernel[axis] - 1) < sizes[axis] + 2 * padding[axis],
            "conv2d: a kernel [{}] with dilation [{}] does not fit an input [{}, {}] with padding [{}]",
            fmt::join(kernel, ", "), fmt::join(dilation, ", "), height, width, fmt::join(padding, ", "));
}

std::unique_ptr<Conv2dPlan> planConv2d(const Conv2dShape& shape, Context& context, Conv2dChoice choice,
                                       Layout offered) {
  shape.validate();
  if (context.device().isCpu()) return cpu::planConv2d(shape, context, choice, offered);
  if constexpr (kCudaBuilt) return cuda::planConv2d(shape, context, choice, offered);
  throw DeviceUnavailable("conv2d: this build has no CUDA");
}

}  // namespace muster
