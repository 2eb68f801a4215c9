#include "muster/core/comparison/sample_mean.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

namespace muster {

double SampleMean::margin() const {
  if (count < 2) return std::numeric_limits<double>::infinity();
  const auto n = static_cast<double>(count);
  const boost::math::students_t distribution(n - 1);
  return boost::math::quantile(distribution, 0.975) * deviation / std::sqrt(n);
}

bool SampleMean::hasSpread() const {
  return count >= 2 && deviation > 1e-12 * std::max(1.0, std::abs(mean));
}

SampleMean sampleMeanOf(std::span<const double> values) {
  SampleMean sample{.count = values.size()};
  if (values.empty()) return sample;
  for (const double value : values) sample.mean += value;
  const auto count = static_cast<double>(values.size());
  sample.mean /= count;
  if (values.size() < 2) return sample;
  double squares = 0;
  for (const double value : values) squares += (value - sample.mean) * (value - sample.mean);
  sample.deviation = std::sqrt(squares / (count - 1));
  return sample;
}

std::string meanText(const SampleMean& sample, double factor, int decimals) {
  const auto mean = fmt::format("{:.{}f}", sample.mean * factor, decimals);
  if (sample.count < 2) return mean;
  return fmt::format("{} ± {:.{}f}", mean, sample.deviation * factor, decimals);
}

}  // namespace muster
