#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace muster {

/// How numbers are distributed: bins of equal width from the smallest to the largest.
struct Histogram {
  static constexpr int kBins = 50;

  std::int64_t count = 0;      ///< finite numbers
  std::int64_t nonFinite = 0;  ///< NaN and infinities, which are in no bin and no sum
  double min = 0, max = 0;     ///< 0 if there are no finite numbers
  double sum = 0, sumOfSquares = 0;
  std::array<std::int64_t, kBins> bins{};  ///< bin b: from edge(b) to edge(b + 1); the last one with its end

  double edge(int bin) const { return min + (max - min) * (static_cast<double>(bin) / kBins); }
  /// sqrt(sum of squares).
  double norm() const;
};

/// @param before  empty, or as many numbers as `values`: the histogram is that of values - before.
/// Two passes, no allocation. Sums are taken in order, in float64.
Histogram histogramOf(std::span<const float> values, std::span<const float> before = {});
/// As above.
Histogram histogramOf(std::span<const double> values, std::span<const double> before = {});

}  // namespace muster
