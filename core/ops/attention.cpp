#include "muster/core/ops/attention.h"

#include "muster/built.h"
#include "muster/core/base/error.h"

namespace muster {

void AttentionShape::validate() const {
  require(batch >= 1 && steps >= 1 && features >= 1,
          "attention: expected sequences [N, T, F] of at least one step, got [{}, {}, {}]", batch, steps,
          features);
  require(heads >= 1 && features % heads == 0, "attention: {} heads do not divide {} features", heads,
          features);
}

std::unique_ptr<AttentionPlan> planAttention(const AttentionShape& shape, bool training, Context& context) {
  shape.validate();
  if (context.device().isCpu()) return cpu::planAttention(shape, training, context);
  if constexpr (kCudaBuilt) return cuda::planAttention(shape, training, context);
  throw DeviceUnavailable("attention: this build has no CUDA");
}

}  // namespace muster
