#include "muster/core/ops/gather.h"

#include "muster/core/backend/cuda/kernels/gather.h"

#include "muster/core/backend/cuda/state.h"

namespace muster::cuda {

void gatherRows(const Tensor& source, const Tensor& rows, Tensor& target, Context& context) {
  const std::int64_t bytes =
      source.shape().dropFirst().elements() * static_cast<std::int64_t>(sizeOf(source.dtype()));
  MUSTER_CUDA_CHECK(launchGather(source.raw(), source.shape()[0], rows.data<std::int64_t>(), rows.elements(),
                                 bytes, target.raw(), stateOf(context).stream()));
}

}  // namespace muster::cuda
