#include "muster/core/ops/pad2d.h"

#include <algorithm>

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"
#include "muster/core/ops/detail/extents.h"

namespace muster {

Shape padded2d(const Shape& input, const Padding2d& padding) {
  if (input.rank() != 4)
    throw InvalidArgument(fmt::format("pad2d: expected [N, C, H, W], got {}", input.toString()));
  if (std::ranges::min(padding) < 0)
    throw InvalidArgument(
        fmt::format("pad2d: padding cannot be negative, got [{}]", fmt::join(padding, ", ")));
  detail::requireExtents("pad2d", {input[2], input[3], padding[0], padding[1], padding[2], padding[3]});
  return {input[0], input[1], padding[0] + input[2] + padding[1], padding[2] + input[3] + padding[3]};
}

void pad2d(const Tensor& x, const Padding2d& padding, Tensor& y, Context& context) {
  detail::expectTensor("pad2d", "y", y,
                       {padded2d(x.shape(), padding), x.layout(), DType::Float32, x.device()});
  detail::expectLike("pad2d", "x", x, x);
  if (x.device().isCpu()) return cpu::pad2d(x, padding, y, context);
  if constexpr (kCudaBuilt) return cuda::pad2d(x, padding, y, context);
  throw DeviceUnavailable("pad2d: this build has no CUDA");
}

void pad2dBackward(const Tensor& gradY, const Padding2d& padding, Tensor& gradX, Context& context) {
  detail::expectTensor("pad2d", "gradY", gradY,
                       {padded2d(gradX.shape(), padding), gradX.layout(), DType::Float32, gradX.device()});
  detail::expectLike("pad2d", "gradX", gradX, gradX);
  if (gradX.device().isCpu()) return cpu::pad2dBackward(gradY, padding, gradX, context);
  if constexpr (kCudaBuilt) return cuda::pad2dBackward(gradY, padding, gradX, context);
  throw DeviceUnavailable("pad2d: this build has no CUDA");
}

}  // namespace muster
