#include "muster/core/ops/dropout.h"

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {

namespace {

void requireUsable(const Tensor& x, const Tensor& y, double rate) {
  require(rate >= 0 && rate < 1, "dropout: expected a rate from 0 to less than 1, got {}", rate);
  if (!x.defined() || x.layout() != Layout::RowMajor || x.shape().rank() == 0)
    throw InvalidArgument(
        fmt::format("dropout: expected float32 [N, ...] in row-major order, got {}", x.toString()));
  detail::expectLike("dropout", "x", x, x);
  detail::expectLike("dropout", "y", y, x);
}

}  // namespace

void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, std::int64_t firstExample,
             Context& context) {
  requireUsable(x, y, rate);
  require(firstExample >= 0, "dropout: expected the first example's position, got {}", firstExample);
  if (x.device().isCpu()) return cpu::dropout(x, y, rate, random, firstExample, context);
  if constexpr (kCudaBuilt) return cuda::dropout(x, y, rate, random, firstExample, context);
  throw DeviceUnavailable("dropout: this build has no CUDA");
}

void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, const Tensor& position,
             Context& context) {
  requireUsable(x, y, rate);
  detail::expectTensor("dropout", "position", position,
                       {.shape = {2}, .dtype = DType::Int64, .device = x.device()});
  if (x.device().isCpu()) return cpu::dropout(x, y, rate, random, position, context);
  if constexpr (kCudaBuilt) return cuda::dropout(x, y, rate, random, position, context);
  throw DeviceUnavailable("dropout: this build has no CUDA");
}

}  // namespace muster
