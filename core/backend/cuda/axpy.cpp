#include "muster/core/ops/axpy.h"

#include "muster/core/backend/cuda/kernels/elementwise.h"
#include "muster/core/backend/cuda/state.h"

namespace muster::cuda {

void axpy(double a, const Tensor& x, Tensor& y, Context& context) {
  const cudaStream_t stream = stateOf(context).stream();
  if (y.dtype() == DType::Float64)
    MUSTER_CUDA_CHECK(launchAxpy(a, x.data<double>(), y.data<double>(), y.storage(), stream));
  else
    MUSTER_CUDA_CHECK(launchAxpy(a, x.data<float>(), y.data<float>(), y.storage(), stream));
}

}  // namespace muster::cuda
