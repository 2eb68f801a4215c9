#include "muster/core/ops/recurrent.h"

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {

void RecurrentShape::validate() const {
  require(batch >= 1 && steps >= 1 && features >= 1 && units >= 1,
          "recurrent: expected sequences [N, T, F] of at least one step and at least one unit, got {} and {} "
          "units",
          fmt::format("[{}, {}, {}]", batch, steps, features), units);
}

std::unique_ptr<RecurrentPlan> planRecurrent(const RecurrentShape& shape, bool training, Context& context) {
  shape.validate();
  if (context.device().isCpu()) return cpu::planRecurrent(shape, training, context);
  if constexpr (kCudaBuilt) return cuda::planRecurrent(shape, training, context);
  throw DeviceUnavailable("recurrent: this build has no CUDA");
}

}  // namespace muster
