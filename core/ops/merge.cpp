#include "muster/core/ops/merge.h"

#include <cmath>
#include <string_view>

#include "muster/core/base/error.h"

namespace muster {
namespace {

/// One replica, or the shadow, against the first replica.
void checkBlock(const Tensor& block, const Tensor& first, std::string_view name, std::string_view op) {
  const bool real = block.dtype() == DType::Float32 || block.dtype() == DType::Float64;
  if (block.defined() && real && block.dtype() == first.dtype() && block.layout() == Layout::RowMajor &&
      block.elements() == first.elements())
    return;
  throw InvalidArgument(fmt::format(
      "{}: {} must be float32 or float64, row-major and of the first replica's type and size ({}), got {}",
      op, name, first.toString(), block.toString()));
}

void checkWeights(std::span<const double> weights, std::size_t replicas, std::string_view op) {
  require(weights.size() == replicas, "{}: {} weights were given for {} replicas", op, weights.size(),
          replicas);
  double total = 0;
  for (const double weight : weights) {
    require(std::isfinite(weight) && weight >= 0, "{}: weights must be finite and not negative, got {}", op,
            weight);
    total += weight;
  }
  require(total > 0 && std::isfinite(total), "{}: the weights sum to {}, so there is no mean", op, total);
}

/// @param parts  numbers that an element has: 1, or 2 for moments.
void check(std::span<const Tensor> replicas, std::span<const double> weights, const Tensor& shadow,
           std::int64_t begin, std::int64_t end, int parts, std::string_view op) {
  require(!replicas.empty(), "{}: there are no replicas", op);
  for (const auto& replica : replicas) checkBlock(replica, replicas[0], "a replica", op);
  if (shadow.defined()) checkBlock(shadow, replicas[0], "the shadow", op);
  checkWeights(weights, replicas.size(), op);
  const std::int64_t elements = replicas[0].elements();
  require(elements % parts == 0, "{}: {} elements are not means and variances", op, elements);
  require(0 <= begin && begin <= end && end <= elements / parts, "{}: [{}, {}) does not lie in {} elements",
          op, begin, end, elements / parts);
  for (const auto& replica : replicas)
    if (!replica.device().isCpu()) throw DeviceUnavailable(fmt::format("{}: this build has no CUDA", op));
  if (!shadow.device().isCpu()) throw DeviceUnavailable(fmt::format("{}: this build has no CUDA", op));
}

}  // namespace

void weightedMean(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& shadow,
                  std::int64_t begin, std::int64_t end, Context& context) {
  check(replicas, weights, shadow, begin, end, 1, "weightedMean");
  cpu::weightedMean(replicas, weights, shadow, begin, end, context);
}

double relativeDistance(std::span<const Spread> slices) {
  Spread total;
  for (const auto& slice : slices) {
    total.distance += slice.distance;
    total.norm += slice.norm;
  }
  return total.norm > 0 ? std::sqrt(total.distance / total.norm) : 0;
}

Spread weightedSpread(std::span<const Tensor> replicas, std::span<const double> weights, std::int64_t begin,
                      std::int64_t end) {
  check(replicas, weights, Tensor(), begin, end, 1, "weightedSpread");
  return cpu::weightedSpread(replicas, weights, begin, end);
}

Spread addWeightedMean(std::span<const Tensor> vectors, std::span<const double> weights, std::int64_t begin,
                       std::int64_t end, Tensor& out) {
  check(vectors, weights, out, begin, end, 1, "addWeightedMean");
  return cpu::addWeightedMean(vectors, weights, begin, end, out);
}

void weightedMoments(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& shadow,
                     std::int64_t begin, std::int64_t end, Context& context) {
  check(replicas, weights, shadow, begin, end, 2, "weightedMoments");
  cpu::weightedMoments(replicas, weights, shadow, begin, end, context);
}

}  // namespace muster
