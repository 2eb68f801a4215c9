#include "muster/core/listeners/watch/histogram.h"

#include <algorithm>
#include <cmath>

#include "muster/core/base/error.h"

namespace muster {
namespace {

/// @param at  returns the number at a position.
template <typename At>
Histogram count(std::size_t size, At at) {
  Histogram h;
  for (std::size_t i = 0; i < size; ++i) {
    const double x = at(i);
    if (!std::isfinite(x)) {
      ++h.nonFinite;
      continue;
    }
    h.min = h.count == 0 ? x : std::min(h.min, x);
    h.max = h.count == 0 ? x : std::max(h.max, x);
    ++h.count;
    h.sum += x;
    h.sumOfSquares += x * x;
  }
  const double width = h.max - h.min;
  if (!(width > 0 && std::isfinite(width))) {
    h.bins.front() = h.count;
    return h;
  }
  const double scale = Histogram::kBins / width;
  for (std::size_t i = 0; i < size; ++i) {
    const double x = at(i);
    if (!std::isfinite(x)) continue;
    const auto bin = std::min<double>((x - h.min) * scale, Histogram::kBins - 1);
    ++h.bins[static_cast<std::size_t>(bin)];
  }
  return h;
}

template <typename T>
Histogram countDifferences(std::span<const T> values, std::span<const T> before) {
  if (before.empty()) return count(values.size(), [&](std::size_t i) { return double{values[i]}; });
  require(before.size() == values.size(), "histogram: {} numbers before and {} after", before.size(),
          values.size());
  return count(values.size(), [&](std::size_t i) { return double{values[i]} - double{before[i]}; });
}

}  // namespace

double Histogram::norm() const {
  return std::sqrt(sumOfSquares);
}

Histogram histogramOf(std::span<const float> values, std::span<const float> before) {
  return countDifferences(values, before);
}

Histogram histogramOf(std::span<const double> values, std::span<const double> before) {
  return countDifferences(values, before);
}

}  // namespace muster
