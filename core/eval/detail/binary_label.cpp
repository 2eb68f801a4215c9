#include "muster/core/eval/detail/binary_label.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace muster::detail {
namespace {

/// By whether an example has the label and whether it was predicted.
struct Counts {
  std::int64_t truePositives, falsePositives, trueNegatives, falseNegatives;
};

Counts countsOf(const BinaryLabel& label) {
  const std::int64_t right = std::ranges::count_if(label.with, BinaryLabel::isPredicted);
  const std::int64_t wrong = std::ranges::count_if(label.without, BinaryLabel::isPredicted);
  return {right, wrong, std::ssize(label.without) - wrong, std::ssize(label.with) - right};
}

/// Calls `at(with, without)` for each threshold, from the largest: the numbers of predictions at or above it.
template <typename At>
void forEachThreshold(const BinaryLabel& label, At at) {
  const auto a = descending(label.with), b = descending(label.without);
  for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    const float threshold = i == a.size() ? b[j] : j == b.size() ? a[i] : std::max(a[i], b[j]);
    while (i < a.size() && a[i] == threshold) ++i;
    while (j < b.size() && b[j] == threshold) ++j;
    at(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j));
  }
}

/// Both may be the same, as of an evaluation that is merged with itself.
void append(const std::vector<float>& from, std::vector<float>& to) {
  const std::size_t count = from.size(), old = to.size();
  to.resize(old + count);
  std::copy_n(from.begin(), count, to.begin() + static_cast<std::ptrdiff_t>(old));
}

}  // namespace

double quotient(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::vector<float> descending(std::vector<float> values) {
  std::ranges::sort(values, std::greater{});
  return values;
}

void BinaryLabel::merge(const BinaryLabel& other) {
  append(other.with, with);
  append(other.without, without);
}

double BinaryLabel::accuracy() const {
  const Counts counts = countsOf(*this);
  return quotient(counts.truePositives + counts.trueNegatives, std::ssize(with) + std::ssize(without));
}

double BinaryLabel::precision() const {
  const Counts counts = countsOf(*this);
  return quotient(counts.truePositives, counts.truePositives + counts.falsePositives);
}

double BinaryLabel::recall() const {
  const Counts counts = countsOf(*this);
  return quotient(counts.truePositives, counts.truePositives + counts.falseNegatives);
}

double BinaryLabel::f1() const {
  const Counts counts = countsOf(*this);
  return quotient(2 * counts.truePositives,
                  2 * counts.truePositives + counts.falsePositives + counts.falseNegatives);
}

double BinaryLabel::auc() const {
  if (with.empty() || without.empty()) return std::numeric_limits<double>::quiet_NaN();
  // Twice the number of pairs in the right order, in whole numbers: examples are fewer than 2^31.
  std::int64_t twice = 0;
  std::int64_t withBefore = 0, withoutBefore = 0;
  forEachThreshold(*this, [&](std::int64_t i, std::int64_t j) {
    twice += (j - withoutBefore) * (i + withBefore);
    withBefore = i;
    withoutBefore = j;
  });
  const double pairs = static_cast<double>(with.size()) * static_cast<double>(without.size());
  return static_cast<double>(twice) / (2 * pairs);
}

double BinaryLabel::averagePrecision() const {
  if (with.empty()) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  std::int64_t before = 0;
  forEachThreshold(*this, [&](std::int64_t i, std::int64_t j) {
    sum += static_cast<double>(i - before) * quotient(i, i + j);
    before = i;
  });
  return sum / static_cast<double>(with.size());
}

}  // namespace muster::detail
