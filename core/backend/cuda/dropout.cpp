#include "muster/core/ops/dropout.h"

#include <cmath>

#include "muster/core/backend/cuda/kernels/elementwise.h"
#include "muster/core/backend/cuda/state.h"

namespace muster::cuda {
namespace {

void run(const Tensor& x, Tensor& y, double rate, const RandomStream& random, DropoutRule rule,
         Context& context) {
  if (rate == 0) {
    if (x.raw() != y.raw()) copy(x, y, context);
    return;
  }
  rule.threshold = static_cast<std::uint64_t>(std::floor(rate * 0x1p32));
  rule.scale = static_cast<float>(1 / (1 - rate));
  rule.key = random.key();
  rule.rows = x.shape()[0];
  rule.features = x.shape().dropFirst().elements();
  MUSTER_CUDA_CHECK(launchDropout(x.data<float>(), y.data<float>(), rule, stateOf(context).stream()));
}

}  // namespace

void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, std::int64_t firstExample,
             Context& context) {
  DropoutRule rule{};
  rule.epoch = static_cast<std::int64_t>(random.epoch());
  rule.firstExample = firstExample;
  run(x, y, rate, random, rule, context);
}

void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, const Tensor& position,
             Context& context) {
  DropoutRule rule{};
  rule.position = position.data<std::int64_t>();
  run(x, y, rate, random, rule, context);
}

}  // namespace muster::cuda
