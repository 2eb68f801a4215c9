#include "muster/core/ops/merge.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {
namespace {

/// Checks one replica, or the merged copy, against the first replica.
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

/// Only collectives merge across devices.
void checkDevice(const Tensor& block, Device device, std::string_view op) {
  if (block.device() != device)
    throw InvalidArgument(fmt::format("{}: all must be on one device, got {} and {}", op, device.toString(),
                                      block.device().toString()));
}

/// @param parts  numbers of an element: 1, or 2 for moments.
void requireMergeable(std::span<const Tensor> replicas, std::span<const double> weights,
                      const Tensor& mergedCopy, std::int64_t begin, std::int64_t end, int parts,
                      std::string_view op) {
  require(!replicas.empty(), "{}: there are no replicas", op);
  for (const auto& replica : replicas) checkBlock(replica, replicas[0], "a replica", op);
  if (mergedCopy.defined()) checkBlock(mergedCopy, replicas[0], "the merged copy", op);
  checkWeights(weights, replicas.size(), op);
  const std::int64_t elements = replicas[0].elements();
  require(elements % parts == 0, "{}: {} elements are not means and variances", op, elements);
  require(0 <= begin && begin <= end && end <= elements / parts, "{}: [{}, {}) is not within {} elements", op,
          begin, end, elements / parts);
  const Device device = replicas[0].device();
  for (const auto& replica : replicas) checkDevice(replica, device, op);
  if (mergedCopy.defined()) checkDevice(mergedCopy, device, op);
}

/// Whether one of these numbers on the CPU is not 0.
bool anyRefused(std::span<const Tensor> refused) {
  return std::ranges::any_of(refused, [](const Tensor& one) { return *one.data<double>() != 0; });
}

void checkRefused(std::span<const Tensor> refused, Device device, std::string_view op) {
  for (const auto& one : refused)
    detail::expectTensor(op, "refused", one, {.shape = {1}, .dtype = DType::Float64, .device = device});
}

}  // namespace

void weightedMean(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                  std::int64_t begin, std::int64_t end, Context& context, std::span<const Tensor> refused) {
  requireMergeable(replicas, weights, mergedCopy, begin, end, 1, "weightedMean");
  checkRefused(refused, replicas[0].device(), "weightedMean");
  Tensor none;
  if (replicas[0].device().isCpu()) {
    if (!anyRefused(refused)) cpu::weightedMean(replicas, weights, mergedCopy, begin, end, none, context);
    return;
  }
  if constexpr (kCudaBuilt)
    return cuda::weightedMean(replicas, weights, mergedCopy, begin, end, none, context, refused);
  throw DeviceUnavailable("weightedMean: this build has no CUDA");
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
                      std::int64_t end, Context& context) {
  requireMergeable(replicas, weights, Tensor(), begin, end, 1, "weightedSpread");
  if (replicas[0].device().isCpu()) return cpu::weightedSpread(replicas, weights, begin, end, context);
  if constexpr (kCudaBuilt) return cuda::weightedSpread(replicas, weights, begin, end, context);
  throw DeviceUnavailable("weightedSpread: this build has no CUDA");
}

void weightedMean(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                  std::int64_t begin, std::int64_t end, Tensor& distances, Context& context) {
  requireMergeable(replicas, weights, mergedCopy, begin, end, 1, "weightedMean");
  detail::expectTensor("weightedMean", "distances", distances,
                       {.shape = {static_cast<std::int64_t>(replicas.size()) + 1},
                        .dtype = DType::Float64,
                        .device = replicas[0].device()});
  if (replicas[0].device().isCpu())
    return cpu::weightedMean(replicas, weights, mergedCopy, begin, end, distances, context);
  if constexpr (kCudaBuilt)
    return cuda::weightedMean(replicas, weights, mergedCopy, begin, end, distances, context, {});
  throw DeviceUnavailable("weightedMean: this build has no CUDA");
}

Spread spreadOf(std::span<const double> distances, std::span<const double> weights) {
  checkWeights(weights, distances.size() - 1, "spreadOf");
  Spread spread{.distance = 0, .norm = distances.back()};
  double total = 0;
  for (const double weight : weights) total += weight;
  for (std::size_t w = 0; w < weights.size(); ++w)
    if (weights[w] != 0) spread.distance += weights[w] / total * distances[w];
  return spread;
}

void weightedMoments(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                     std::int64_t begin, std::int64_t end, Context& context,
                     std::span<const Tensor> refused) {
  requireMergeable(replicas, weights, mergedCopy, begin, end, 2, "weightedMoments");
  checkRefused(refused, replicas[0].device(), "weightedMoments");
  if (replicas[0].device().isCpu()) {
    if (!anyRefused(refused)) cpu::weightedMoments(replicas, weights, mergedCopy, begin, end, context);
    return;
  }
  if constexpr (kCudaBuilt)
    return cuda::weightedMoments(replicas, weights, mergedCopy, begin, end, context, refused);
  throw DeviceUnavailable("weightedMoments: this build has no CUDA");
}

}  // namespace muster
