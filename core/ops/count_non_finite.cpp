#include "muster/core/ops/count_non_finite.h"

#include "muster/built.h"
#include "muster/core/base/error.h"

namespace muster {

void countNonFinite(const Tensor& x, Tensor& count, Context& context) {
  const bool real = x.defined() && (x.dtype() == DType::Float32 || x.dtype() == DType::Float64);
  if (!real || x.layout() != Layout::RowMajor || x.device() != context.device())
    throw InvalidArgument(fmt::format("countNonFinite: expected float32 or float64, row-major, on {}, got {}",
                                      context.device().toString(), x.toString()));
  if (!count.defined() || count.dtype() != DType::Float64 || count.elements() != 1 ||
      count.device() != context.device())
    throw InvalidArgument(fmt::format("countNonFinite: the count must be float64 [1] on {}, got {}",
                                      context.device().toString(), count.toString()));
  if (context.device().isCpu()) return cpu::countNonFinite(x, count);
  if constexpr (kCudaBuilt) return cuda::countNonFinite(x, count, context);
  throw DeviceUnavailable("countNonFinite: this build has no CUDA");
}

}  // namespace muster
