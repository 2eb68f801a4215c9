#include "muster/core/ops/merge.h"

#include <algorithm>

#include "muster/core/backend/cuda/kernels/merge.h"

#include "muster/core/backend/cuda/state.h"
#include "muster/core/base/error.h"

namespace muster::cuda {
namespace {

static_assert(mergeScratch(8) * sizeof(double) <= kScratchBytes);

template <typename T>
ReplicaTable<T> tableOf(std::span<const Tensor> replicas, std::span<const double> weights) {
  require(replicas.size() <= kMostReplicas, "merge: {} replicas are more than the {} that one GPU merges",
          replicas.size(), kMostReplicas);
  ReplicaTable<T> table{};
  table.count = static_cast<int>(replicas.size());
  double total = 0;
  for (const double weight : weights) total += weight;
  for (std::size_t w = 0; w < replicas.size(); ++w) {
    table.at[w] = replicas[w].data<T>();
    table.share[w] = weights[w] / total;
  }
  return table;
}

/// Calls f(T{}) for the replicas' element type.
template <typename F>
auto withType(const Tensor& tensor, F f) {
  return tensor.dtype() == DType::Float64 ? f(double{}) : f(float{});
}

/// A null pointer for an undefined tensor.
template <typename T>
T* dataOf(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

RefusalTable refusalsOf(std::span<const Tensor> refused) {
  require(refused.size() <= kMostReplicas, "merge: {} refusals are more than {}", refused.size(),
          kMostReplicas);
  RefusalTable table{};
  for (const auto& one : refused) table.at[table.count++] = one.data<double>();
  return table;
}

void mean(std::span<const Tensor> replicas, std::span<const double> weights, const Tensor& mergedCopy,
          std::int64_t begin, std::int64_t end, bool write, double* distances, const RefusalTable& refused,
          State& state) {
  MUSTER_CUDA_CHECK(withType(replicas[0], [&](auto type) {
    using T = decltype(type);
    return launchMean(tableOf<T>(replicas, weights), dataOf<T>(mergedCopy), begin, end, write, distances,
                      state.scratch(), state.counters(), refused, state.stream());
  }));
}

/// Copies elements [begin, end) of the one contributor to all others, bit for bit.
void copyToOthers(std::span<const Tensor> replicas, std::size_t source, const Tensor& mergedCopy,
                  std::int64_t begin, std::int64_t end, State& state) {
  const std::size_t size = sizeOf(replicas[source].dtype());
  const auto place = [&](const Tensor& tensor) {
    return static_cast<std::byte*>(tensor.raw()) + static_cast<std::size_t>(begin) * size;
  };
  const auto copyTo = [&](const Tensor& target) {
    MUSTER_CUDA_CHECK(cudaMemcpyAsync(place(target), place(replicas[source]),
                                      static_cast<std::size_t>(end - begin) * size, cudaMemcpyDeviceToDevice,
                                      state.stream()));
  };
  if (begin == end) return;
  for (std::size_t w = 0; w < replicas.size(); ++w)
    if (w != source) copyTo(replicas[w]);
  if (mergedCopy.defined()) copyTo(mergedCopy);
}

/// The only replica with a positive weight; the number of replicas if there are several.
std::size_t onlyContributor(std::span<const double> weights) {
  const auto has = [](double weight) { return weight != 0; };
  if (std::ranges::count_if(weights, has) != 1) return weights.size();
  return static_cast<std::size_t>(std::ranges::find_if(weights, has) - weights.begin());
}

}  // namespace

void weightedMean(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                  std::int64_t begin, std::int64_t end, Tensor& distances, Context& context,
                  std::span<const Tensor> refused) {
  State& state = stateOf(context);
  const std::size_t only = onlyContributor(weights);
  // Only the mean's kernel can refuse. With one contributor, the mean has the same bits as a copy.
  const bool several = only == replicas.size() || !refused.empty();
  if (several || distances.defined())
    mean(replicas, weights, mergedCopy, begin, end, several, dataOf<double>(distances), refusalsOf(refused),
         state);
  if (!several) copyToOthers(replicas, only, mergedCopy, begin, end, state);
}

void weightedMoments(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                     std::int64_t begin, std::int64_t end, Context& context,
                     std::span<const Tensor> refused) {
  State& state = stateOf(context);
  const std::int64_t half = replicas[0].elements() / 2;
  if (const std::size_t only = onlyContributor(weights); only != replicas.size()) {
    const auto copyPart = [&](std::int64_t from, std::int64_t to) {
      if (refused.empty()) return copyToOthers(replicas, only, mergedCopy, from, to, state);
      mean(replicas, weights, mergedCopy, from, to, /*write=*/true, nullptr, refusalsOf(refused), state);
    };
    copyPart(begin, end);
    return copyPart(half + begin, half + end);
  }
  int origin = 0;
  while (weights[static_cast<std::size_t>(origin)] == 0) ++origin;
  MUSTER_CUDA_CHECK(withType(replicas[0], [&](auto type) {
    using T = decltype(type);
    return launchMoments(tableOf<T>(replicas, weights), dataOf<T>(mergedCopy), begin, end, half, origin,
                         refusalsOf(refused), state.stream());
  }));
}

Spread weightedSpread(std::span<const Tensor> replicas, std::span<const double> weights, std::int64_t begin,
                      std::int64_t end, Context& context) {
  State& state = stateOf(context);
  auto* const distances = reinterpret_cast<double*>(state.deviceResult());
  mean(replicas, weights, Tensor(), begin, end, /*write=*/false, distances, {}, state);
  const std::size_t count = replicas.size() + 1;
  const auto* const read = reinterpret_cast<const double*>(state.readResult(count * sizeof(double)));
  return spreadOf({read, count}, weights);
}

}  // namespace muster::cuda
