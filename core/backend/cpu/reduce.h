#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/ops/update.h"

// Note [Sums that do not depend on threads]
// Each range is cut into chunks of a fixed size. Sixteen lanes sum a chunk in float64, for any vector width.
// Adjacent chunks form at most kGroups groups, whose sums are on the stack, so an update allocates nothing.
// Threads take whole groups; the groups' sums are added in order. No sum depends on the number of threads.

namespace muster::cpu {

inline constexpr std::int64_t kChunk = 4096;
inline constexpr std::int64_t kGroups = 1024;

/// Visits the chunks of some ranges in order, starting at any of them.
class ChunkCursor {
 public:
  ChunkCursor(std::span<const UpdateRange> ranges, std::int64_t chunk) : range_(ranges.data()) {
    for (; chunk >= chunksOf(*range_); ++range_) chunk -= chunksOf(*range_);
    begin_ = range_->begin + chunk * kChunk;
  }

  static std::int64_t chunksOf(const UpdateRange& range) {
    return (range.end - range.begin + kChunk - 1) / kChunk;
  }

  const UpdateRange& range() const { return *range_; }
  std::int64_t begin() const { return begin_; }
  std::int64_t end() const { return std::min(begin_ + kChunk, range_->end); }

  /// Advances to the next chunk, which must exist.
  void advance() {
    begin_ += kChunk;
    while (begin_ >= range_->end) begin_ = (++range_)->begin;
  }

 private:
  const UpdateRange* range_;
  std::int64_t begin_ = 0;
};

/// The sum of f(range, begin, end) over all chunks of the ranges, each called once, on the context's threads.
template <typename F>
double sumOverChunks(std::span<const UpdateRange> ranges, Context& context, F f) {
  std::int64_t chunks = 0;
  for (const auto& range : ranges) chunks += ChunkCursor::chunksOf(range);
  const std::int64_t groups = std::min(chunks, kGroups);
  const auto firstChunk = [&](std::int64_t group) { return group * chunks / groups; };

  std::array<double, kGroups> sums;
  constexpr std::int64_t kGrain = 8;  // minimum chunks per thread
  const std::int64_t grain = groups == chunks ? kGrain : 1;
  parallelFor(context, groups, grain, [&](std::int64_t begin, std::int64_t end) {
    ChunkCursor cursor(ranges, firstChunk(begin));
    for (std::int64_t group = begin; group < end; ++group) {
      sums[group] = 0;
      for (std::int64_t chunk = firstChunk(group); chunk < firstChunk(group + 1); ++chunk) {
        sums[group] += f(cursor.range(), cursor.begin(), cursor.end());
        if (chunk + 1 < chunks) cursor.advance();
      }
    }
  });
  double sum = 0;
  for (std::int64_t group = 0; group < groups; ++group) sum += sums[group];
  return sum;
}

/// Sum of term(x[i]) over n elements, in float64.
template <typename Term>
[[gnu::always_inline]] inline double laneSum(const float* x, std::int64_t n) {
  constexpr int kLanes = 16;
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += Term::of(x[i + lane]);
  for (int lane = 0; i < n; ++i, ++lane) lanes[lane] += Term::of(x[i]);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

struct Square {
  [[gnu::always_inline]] static double of(float x) { return static_cast<double>(x) * x; }
};
struct Magnitude {
  [[gnu::always_inline]] static double of(float x) { return x < 0 ? -static_cast<double>(x) : x; }
};

}  // namespace muster::cpu
