#include "muster/core/ops/dropout.h"

#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {

void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, std::int64_t firstExample,
             Context& context) {
  require(rate >= 0 && rate < 1, "dropout: expected a rate from 0 to less than 1, got {}", rate);
  require(firstExample >= 0, "dropout: expected the first example's position, got {}", firstExample);
  if (!x.defined() || x.layout() != Layout::RowMajor || x.shape().rank() == 0)
    throw InvalidArgument(
        fmt::format("dropout: expected float32 [N, ...] in row-major order, got {}", x.toString()));
  detail::expectLike("dropout", "x", x, x);
  detail::expectLike("dropout", "y", y, x);
  if (x.device().isCpu()) return cpu::dropout(x, y, rate, random, firstExample, context);
  throw DeviceUnavailable("dropout: this build has no CUDA");
}

}  // namespace muster
