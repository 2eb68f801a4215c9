#include "muster/core/ops/step_to_mean.h"

#include <cmath>
#include <string_view>

#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {
namespace {

void requireLike(const Tensor& block, const Tensor& first, std::string_view name) {
  detail::expectOnCpu("stepToMean", block);
  const bool real = block.dtype() == DType::Float32 || block.dtype() == DType::Float64;
  if (block.defined() && real && block.dtype() == first.dtype() && block.layout() == Layout::RowMajor &&
      block.elements() == first.elements())
    return;
  throw InvalidArgument(
      fmt::format("stepToMean: {} must be float32 or float64, row-major and of the first replica's "
                  "type and size ({}), got {}",
                  name, first.toString(), block.toString()));
}

}  // namespace

void stepToMean(std::span<const Tensor> replicas, std::span<const double> weights, const Tensor& mergedCopy,
                const StepToMean& step, std::int64_t begin, std::int64_t end, Context& context) {
  require(!replicas.empty() && weights.size() == replicas.size(),
          "stepToMean: {} weights were given for {} replicas", weights.size(), replicas.size());
  for (const Tensor& replica : replicas) requireLike(replica, replicas[0], "a replica");
  requireLike(mergedCopy, replicas[0], "the merged copy");
  if (step.moves.defined()) requireLike(step.moves, replicas[0], "the moves");
  double total = 0;
  for (const double weight : weights) {
    require(std::isfinite(weight) && weight >= 0,
            "stepToMean: weights must be finite and not negative, got {}", weight);
    total += weight;
  }
  require(total > 0 && std::isfinite(total), "stepToMean: the weights sum to {}, so there is no mean", total);
  for (const double factor : {step.rate, step.decay, step.ahead})
    require(std::isfinite(factor), "stepToMean: a factor is {}", factor);
  require(0 <= begin && begin <= end && end <= mergedCopy.elements(),
          "stepToMean: [{}, {}) is not within {} elements", begin, end, mergedCopy.elements());
  cpu::stepToMean(replicas, weights, mergedCopy, step, begin, end, context);
}

}  // namespace muster
