#include "muster/core/ops/dense.h"

#include "muster/built.h"
#include "muster/core/base/error.h"

namespace muster {

std::unique_ptr<DensePlan> planDense(const DenseShape& shape, Context& context) {
  require(shape.batch > 0 && shape.inFeatures > 0 && shape.outFeatures > 0,
          "dense: expected positive sizes, got batch {}, {} inputs and {} outputs", shape.batch,
          shape.inFeatures, shape.outFeatures);
  if (context.device().isCpu()) return cpu::planDense(shape, context);
  if constexpr (kCudaBuilt) return cuda::planDense(shape, context);
  throw DeviceUnavailable("dense: this build has no CUDA");
}

}  // namespace muster
