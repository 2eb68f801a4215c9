#include "muster/core/ops/axpy.h"

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {

void axpy(double a, const Tensor& x, Tensor& y, Context& context) {
  if (!y.defined() || (y.dtype() != DType::Float32 && y.dtype() != DType::Float64))
    throw InvalidArgument(fmt::format("axpy: y must be float32 or float64, got {}", y.toString()));
  detail::expectTensor("axpy", "x", x, {y.shape(), y.layout(), y.dtype(), y.device()});
  if (y.device().isCpu()) return cpu::axpy(a, x, y, context);
  if constexpr (kCudaBuilt) return cuda::axpy(a, x, y, context);
  throw DeviceUnavailable("axpy: this build has no CUDA");
}

}  // namespace muster
