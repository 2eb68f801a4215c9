#include "muster/core/ops/merge.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "muster/core/backend/cpu/contributors.h"
#include "muster/core/backend/cpu/first_bad.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/backend/cpu/weighted_sums.h"
#include "muster/core/ops/detail/finite.h"

// Note [A merge in blocks]
// A block of each replica is added to float64 sums in the L1 cache; then the means are written to all
// replicas and the merged copy while the block is still cached. So each line is read and written once, for
// any number of replicas. Means that are not finite are found there, before they are written.

namespace muster::cpu {
namespace {

// T is float or double throughout: the type of the replicas.

constexpr std::int64_t kBlock = 256;      // elements: 2 KiB of sums, 1 KiB of each float32 replica
constexpr std::int64_t kGrain = 1 << 14;  // minimum elements per thread

/// Like `copyBlock`, but bypasses the caches: the merged copy is not read before a fit ends, and a line that
/// is written completely need not be read first.
template <typename T>
[[gnu::always_inline]] inline void streamBlock(T* __restrict to, const T* __restrict from, std::int64_t n) {
#if defined(__x86_64__)
  if (reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    constexpr std::int64_t kWord = 16 / sizeof(T);
    std::int64_t i = 0;
    for (; i + kWord <= n; i += kWord)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    for (; i < n; ++i) to[i] = from[i];
    return;
  }
#endif
  copyBlock(to, from, n);
}

/// Makes streamed elements visible to threads that synchronise with this one afterwards.
void finishStreaming() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

/// @return n, or the first element whose mean is not finite; then nothing is written.
template <typename T>
std::int64_t meanOfBlock(std::span<const Tensor> replicas, const Contributors& contributors,
                         const Tensor& mergedCopy, std::int64_t begin, std::int64_t n) {
  alignas(64) double sums[kBlock];
  alignas(64) T means[kBlock];
  const auto block = [&](std::size_t replica) { return replicas[replica].data<T>() + begin; };
  const std::size_t first = contributors.first, last = contributors.last;
  dispatch<multiply<T>>(sums, block(first), contributors.share(first), n);
  for (std::size_t replica = first + 1; replica < last; ++replica)
    if (contributors.weights[replica] != 0)
      dispatch<multiplyAdd<T>>(sums, block(replica), contributors.share(replica), n);
  const auto largest = dispatch<addLast<false, T, T>>(means, sums, static_cast<const T*>(block(last)),
                                                      contributors.share(last), n);
  const T* result = means;
  if (!muster::detail::isFinite<T>(largest))
    return std::find_if(means, means + n, [](T x) { return !std::isfinite(x); }) - means;
  for (std::size_t replica = 0; replica < replicas.size(); ++replica)
    dispatch<copyBlock<T>>(block(replica), result, n);
  if (mergedCopy.defined()) dispatch<streamBlock<T>>(mergedCopy.data<T>() + begin, result, n);
  return n;
}

void copyToOthers(std::span<const Tensor> replicas, std::size_t source, const Tensor& mergedCopy,
                  std::int64_t begin, std::int64_t end) {
  const std::size_t size = sizeOf(replicas[source].dtype());
  const auto place = [&](const Tensor& t) {
    return static_cast<std::byte*>(t.raw()) + static_cast<std::size_t>(begin) * size;
  };
  const auto bytes = static_cast<std::size_t>(end - begin) * size;
  const std::byte* from = place(replicas[source]);
  for (std::size_t replica = 0; replica < replicas.size(); ++replica)
    if (replica != source) std::memcpy(place(replicas[replica]), from, bytes);
  if (mergedCopy.defined()) std::memcpy(place(mergedCopy), from, bytes);
}

// Note [Moments about a shift]
// sum p (v + m^2) - mean^2 cancels badly if the mean is large compared with the deviation. Shifting all means
// does not change the variance, so they are taken relative to the first contributor's: the same number, and
// equal replicas do not change.

/// Moments of one element: its mean at `mean`, its variance at `variance` of each replica.
template <typename T>
std::pair<T, T> momentsOfElement(std::span<const Tensor> replicas, const Contributors& contributors,
                                 std::int64_t mean, std::int64_t variance) {
  const double origin = replicas[contributors.first].data<T>()[mean];
  double shifts = 0, squares = 0;
  for (std::size_t replica = contributors.first; replica <= contributors.last; ++replica) {
    const double weight = contributors.weights[replica];
    if (weight == 0) continue;
    const T* x = replicas[replica].data<T>();
    const double shift = x[mean] - origin;
    shifts += weight * shift;
    squares += weight * (x[variance] + shift * shift);
  }
  const double shift = shifts / contributors.total;
  double deviation = squares / contributors.total - shift * shift;
  if (std::isfinite(deviation)) deviation = std::max(0.0, deviation);
  return {static_cast<T>(origin + shift), static_cast<T>(deviation)};
}

template <typename T>
void storeEverywhere(std::span<const Tensor> replicas, const Tensor& mergedCopy, std::int64_t i, T value) {
  for (const auto& replica : replicas) replica.data<T>()[i] = value;
  if (mergedCopy.defined()) mergedCopy.data<T>()[i] = value;
}

template <typename T>
void mean(std::span<const Tensor> replicas, const Contributors& contributors, const Tensor& mergedCopy,
          std::int64_t begin, std::int64_t end, FirstBad& bad) {
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t n = std::min(kBlock, end - at);
    const std::int64_t done = meanOfBlock<T>(replicas, contributors, mergedCopy, at, n);
    if (done < n) bad.note(at + done);
  }
  finishStreaming();
}

template <typename T>
void moments(std::span<const Tensor> replicas, const Contributors& contributors, const Tensor& mergedCopy,
             std::int64_t begin, std::int64_t end, FirstBad& bad) {
  const std::int64_t half = replicas[0].elements() / 2;
  for (std::int64_t i = begin; i < end; ++i) {
    const auto [mean, variance] = momentsOfElement<T>(replicas, contributors, i, half + i);
    if (!std::isfinite(mean) || !std::isfinite(variance)) {
      bad.note(std::isfinite(mean) ? half + i : i);
      continue;
    }
    storeEverywhere(replicas, mergedCopy, i, mean);
    storeEverywhere(replicas, mergedCopy, half + i, variance);
  }
}

/// Adds the spread of elements [begin, begin + n), n <= kBlock, to `spread`.
template <typename T>
void addSpreadOfBlock(std::span<const Tensor> replicas, const Contributors& contributors, std::int64_t begin,
                      std::int64_t n, Spread& spread) {
  std::array<double, kBlock> means{};
  const auto eachContributor = [&](auto use) {
    for (std::size_t replica = contributors.first; replica <= contributors.last; ++replica)
      if (contributors.weights[replica] != 0)
        use(contributors.share(replica), replicas[replica].data<T>() + begin);
  };
  eachContributor([&](double share, const T* x) {
    for (std::int64_t i = 0; i < n; ++i) means[i] += share * static_cast<double>(x[i]);
  });
  eachContributor([&](double share, const T* x) {
    double squares = 0;
    for (std::int64_t i = 0; i < n; ++i) squares += (x[i] - means[i]) * (x[i] - means[i]);
    spread.distance += share * squares;
  });
  for (std::int64_t i = 0; i < n; ++i) spread.norm += means[i] * means[i];
}

template <typename T>
Spread distanceFromMean(const Tensor& replica, std::span<const Tensor> replicas,
                        const Contributors& contributors, std::int64_t begin, std::int64_t end) {
  Spread spread;
  for (std::int64_t i = begin; i < end; ++i) {
    double mean = -0.0;
    for (std::size_t w = contributors.first; w <= contributors.last; ++w)
      if (contributors.weights[w] != 0) mean += contributors.share(w) * replicas[w].data<T>()[i];
    const double difference = replica.data<T>()[i] - mean;
    spread.distance += difference * difference;
    spread.norm += mean * mean;
  }
  return spread;
}

}  // namespace

Spread weightedSpread(std::span<const Tensor> replicas, std::span<const double> weights, std::int64_t begin,
                      std::int64_t end, Context&) {
  const Contributors contributors(weights);
  Spread spread;
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t n = std::min(kBlock, end - at);
    if (replicas[0].dtype() == DType::Float64)
      addSpreadOfBlock<double>(replicas, contributors, at, n, spread);
    else
      addSpreadOfBlock<float>(replicas, contributors, at, n, spread);
  }
  return spread;
}

void weightedMean(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                  std::int64_t begin, std::int64_t end, Tensor& distances, Context& context) {
  const Contributors contributors(weights);
  if (distances.defined()) {
    const auto distance =
        replicas[0].dtype() == DType::Float64 ? distanceFromMean<double> : distanceFromMean<float>;
    auto* const to = distances.data<double>();
    for (std::size_t w = 0; w < replicas.size(); ++w) {
      const Spread own = distance(replicas[w], replicas, contributors, begin, end);
      to[w] = own.distance;
      to[replicas.size()] = own.norm;
    }
  }
  const auto meanOf = replicas[0].dtype() == DType::Float64 ? mean<double> : mean<float>;
  FirstBad bad;
  parallelFor(context, end - begin, kGrain, [&](std::int64_t from, std::int64_t to) {
    if (contributors.count == 1)
      return copyToOthers(replicas, contributors.first, mergedCopy, begin + from, begin + to);
    meanOf(replicas, contributors, mergedCopy, begin + from, begin + to, bad);
  });
  bad.check("weightedMean");
}

void weightedMoments(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                     std::int64_t begin, std::int64_t end, Context&) {
  const Contributors contributors(weights);
  const std::int64_t half = replicas[0].elements() / 2;
  if (contributors.count == 1) {
    copyToOthers(replicas, contributors.first, mergedCopy, begin, end);
    return copyToOthers(replicas, contributors.first, mergedCopy, half + begin, half + end);
  }
  const auto momentsOf = replicas[0].dtype() == DType::Float64 ? moments<double> : moments<float>;
  FirstBad bad;
  momentsOf(replicas, contributors, mergedCopy, begin, end, bad);
  bad.check("weightedMoments");
}

}  // namespace muster::cpu
