#include "muster/core/ops/layer_norm.h"

#include <cmath>

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {

void LayerNormShape::validate() const {
  require(rows >= 1 && features >= 1, "layer_norm: expected [rows, features], got {}", input().toString());
  require(std::isfinite(epsilon) && epsilon > 0, "layer_norm: epsilon must be finite and above 0, got {}",
          epsilon);
}

std::unique_ptr<LayerNormPlan> planLayerNorm(const LayerNormShape& shape, Context& context) {
  shape.validate();
  if (context.device().isCpu()) return cpu::planLayerNorm(shape, context);
  if constexpr (kCudaBuilt) return cuda::planLayerNorm(shape, context);
  throw DeviceUnavailable("layer_norm: this build has no CUDA");
}

}  // namespace muster
