#include "muster/core/ops/count_non_finite.h"

#include "muster/core/backend/cuda/kernels/count_non_finite.h"

#include "muster/core/backend/cuda/check.h"
#include "muster/core/backend/cuda/state.h"

namespace muster::cuda {

void countNonFinite(const Tensor& x, Tensor& count, Context& context) {
  if (x.elements() == 0) return;
  MUSTER_CUDA_CHECK(launchCountNonFinite(x.raw(), x.dtype() == DType::Float64, x.elements(),
                                         count.data<double>(), stateOf(context).stream()));
}

}  // namespace muster::cuda
