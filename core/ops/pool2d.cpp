#include "muster/core/ops/pool2d.h"

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/ops/detail/extents.h"

namespace muster {

Shape Pool2dShape::output() const {
  const auto size = [&](std::int64_t in, int i) { return (in + 2 * padding[i] - kernel[i]) / stride[i] + 1; };
  return {batch, channels, size(height, 0), size(width, 1)};
}

void Pool2dShape::validate() const {
  require(batch >= 1 && channels >= 1 && height >= 1 && width >= 1, "pool2d: expected [N, C, H, W], got {}",
          input().toString());
  detail::requireExtents("pool2d",
                         {height, width, kernel[0], kernel[1], stride[0], stride[1], padding[0], padding[1]});
  const std::int64_t in[] = {height, width};
  for (int i = 0; i < 2; ++i) {
    require(kernel[i] >= 1 && stride[i] >= 1, "pool2d: kernel and stride must be at least 1, got {} and {}",
            kernel[i], stride[i]);
    require(padding[i] >= 0 && padding[i] <= kernel[i] / 2,
            "pool2d: padding must be between 0 and half the kernel, got {} with kernel {}", padding[i],
            kernel[i]);
    require(kernel[i] <= in[i] + 2 * padding[i], "pool2d: a kernel of {} does not fit {} with padding {}",
            kernel[i], plural(in[i], "element"), padding[i]);
  }
}

std::unique_ptr<Pool2dPlan> planPool2d(const Pool2dShape& shape, Layout layout, Context& context) {
  shape.validate();
  if (context.device().isCpu()) return cpu::planPool2d(shape, layout, context);
  if constexpr (kCudaBuilt) return cuda::planPool2d(shape, layout, context);
  throw DeviceUnavailable("pool2d: this build has no CUDA");
}

}  // namespace muster
