#include "muster/core/ops/threshold.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "muster/core/backend/cpu/simd.h"

namespace muster::cpu {
namespace {

// Elements per block. Most blocks send nothing; one vector comparison skips them.
constexpr std::int64_t kBlock = 32;

[[gnu::always_inline]] inline bool reaches(float x, float threshold) {
  return std::fabs(x) >= threshold;
}

[[gnu::always_inline]] inline ResidualCounts accumulate(const float* __restrict values,
                                                        const float* __restrict base,
                                                        float* __restrict residual, float threshold,
                                                        std::int64_t n) {
  ResidualCounts counts;
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t end = std::min(n, begin + kBlock);
    std::int32_t reaching = 0, finite = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      residual[i] += values[i] - base[i];
      reaching += reaches(residual[i], threshold) ? 1 : 0;
      finite += std::fabs(residual[i]) <= std::numeric_limits<float>::max() ? 1 : 0;
    }
    counts.reaching += reaching;
    counts.notFinite += end - begin - finite;
  }
  return counts;
}

[[gnu::always_inline]] inline bool anyReaches(const float* __restrict x, float threshold, std::int64_t n) {
  std::int32_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) count += reaches(x[i], threshold) ? 1 : 0;
  return count > 0;
}

/// Calls take(index, negative) for each element that reaches the threshold, in order, and subtracts the sent
/// value from it.
template <typename Take>
[[gnu::always_inline]] inline void takeAll(float* residual, float threshold, std::int64_t n, Take take) {
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t end = std::min(n, begin + kBlock);
    if (!anyReaches(residual + begin, threshold, end - begin)) continue;
    for (std::int64_t i = begin; i < end; ++i) {
      if (!reaches(residual[i], threshold)) continue;
      const bool negative = residual[i] < 0;
      residual[i] -= negative ? -threshold : threshold;
      take(i, negative);
    }
  }
}

[[gnu::always_inline]] inline void writeList(float* residual, float threshold, std::int64_t n,
                                             std::uint32_t* words, std::uint32_t* const end) {
  takeAll(residual, threshold, n, [&](std::int64_t i, bool negative) {
    if (words != end) *words++ = static_cast<std::uint32_t>(i) * 2 + (negative ? 1 : 0);
  });
}

[[gnu::always_inline]] inline void writeMap(float* residual, float threshold, std::int64_t n,
                                            std::uint32_t* words) {
  takeAll(residual, threshold, n,
          [&](std::int64_t i, bool negative) { words[i / 16] |= (negative ? 2u : 1u) << (i % 16 * 2); });
}

void addList(const ThresholdMessage& message, float step, std::int64_t begin, std::int64_t end, float* out) {
  const auto list = std::span(message.words).first(static_cast<std::size_t>(message.nonZero));
  auto at = std::ranges::lower_bound(list, static_cast<std::uint32_t>(begin) * 2);
  for (; at != list.end() && *at / 2 < end; ++at) out[*at / 2] += *at % 2 == 1 ? -step : step;
}

void addMap(const ThresholdMessage& message, float step, std::int64_t begin, std::int64_t end, float* out) {
  for (std::int64_t word = begin / 16; word * 16 < end; ++word) {
    // An even bit means positive, an odd bit negative; the loop takes the lowest set bit first.
    for (std::uint32_t left = message.words[word]; left != 0; left &= left - 1) {
      const int bit = std::countr_zero(left);
      const std::int64_t i = word * 16 + bit / 2;
      if (i >= begin && i < end) out[i] += bit % 2 == 1 ? -step : step;
    }
  }
}

}  // namespace

ResidualCounts accumulateUpdate(const Tensor& values, const Tensor& base, float threshold, Tensor& residual) {
  return dispatch<accumulate>(values.data<float>(), base.data<float>(), residual.data<float>(), threshold,
                              values.elements());
}

void encodeThreshold(Tensor& residual, float threshold, std::int64_t nonZero, ThresholdMessage& message) {
  float* const x = residual.data<float>();
  std::uint32_t* const words = message.words.data();
  if (!message.isMap) return dispatch<writeList>(x, threshold, message.elements, words, words + nonZero);
  std::ranges::fill(message.words, 0u);
  dispatch<writeMap>(x, threshold, message.elements, words);
}

void addDecoded(const ThresholdMessage& message, float scale, std::int64_t begin, std::int64_t end,
                Tensor& out) {
  const float step = scale * message.threshold;
  (message.isMap ? addMap : addList)(message, step, begin, end, out.data<float>());
}

void clampElements(Tensor& values, float limit) {
  float* const x = values.data<float>();
  for (std::int64_t i = 0; i < values.elements(); ++i) x[i] = std::clamp(x[i], -limit, limit);
}

}  // namespace muster::cpu
