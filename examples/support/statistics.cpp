#include "examples/support/statistics.h"

#include <cmath>

namespace example {

Spread spreadOf(std::span<const double> values) {
  Spread spread{.count = values.size()};
  if (values.empty()) return spread;
  for (const double value : values) spread.mean += value;
  const auto count = static_cast<double>(values.size());
  spread.mean /= count;
  if (values.size() < 2) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / (count - 1));
  return spread;
}

}  // namespace example
