#include "muster/core/ops/batch_norm.h"

#include <cmath>

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {

void BatchNormShape::validate() const {
  require((input.rank() == 2 || input.rank() == 4) && input.elements() > 0,
          "batch_norm: expected [N, C] or [N, C, H, W], got {}", input.toString());
  require(std::isfinite(epsilon) && epsilon > 0, "batch_norm: epsilon must be finite and above 0, got {}",
          epsilon);
  require(activation == Activation::Identity || activation == Activation::ReLU,
          "batch_norm: the activation can be identity or relu, got {}", nameOf(activation));
}

std::unique_ptr<BatchNormPlan> planBatchNorm(const BatchNormShape& shape, Layout layout, Context& context) {
  shape.validate();
  require(shape.input.rank() == 4 || layout == Layout::RowMajor, "batch_norm: {} cannot be {}",
          shape.input.toString(), nameOf(layout));
  if (context.device().isCpu()) return cpu::planBatchNorm(shape, layout, context);
  if constexpr (kCudaBuilt) return cuda::planBatchNorm(shape, layout, context);
  throw DeviceUnavailable("batch_norm: this build has no CUDA");
}

}  // namespace muster
