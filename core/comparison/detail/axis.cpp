#include "muster/core/comparison/detail/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "muster/core/base/number_text.h"

namespace muster::detail {
namespace {

/// Ticks of accuracies on a scale of errors.
constexpr double kAccuracies[] = {0,    0.2,  0.4,  0.6,   0.7,   0.8,   0.9,    0.93,   0.95,
                                  0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999, 1};
constexpr double kApart = 0.05;  // ticks of accuracies, as a share of the axis

}  // namespace

Axis Axis::of(const std::vector<double>& values, Scale scale, double pad, double leastError) {
  Axis axis{.scale = scale, .low = std::numeric_limits<double>::infinity(), .leastError = leastError};
  axis.high = -axis.low;
  for (const double value : values) {
    const double at = axis.transformed(value);
    if (!std::isfinite(at)) continue;
    axis.low = std::min(axis.low, at);
    axis.high = std::max(axis.high, at);
  }
  const double range = axis.high - axis.low;
  const double all = axis.low == 0 ? 1 : std::abs(axis.low) * pad;  // where all values are equal
  const double more = range > 0 ? range * pad : all;
  axis.low -= more;
  axis.high += more;
  return axis;
}

double Axis::transformed(double value) const {
  if (scale == Scale::Log) return std::log10(value);
  if (scale == Scale::Error) return -std::log10(std::clamp(1 - value, leastError, 2.0));
  return value;
}

std::vector<double> Axis::ticks(int count) const {
  if (scale == Scale::Log) {
    const double from = std::pow(10, low), to = std::pow(10, high);
    const auto ticks = logTicks(from, to);
    return ticks.size() < 2 ? niceTicks(from, to, count) : ticks;  // a range within two of them
  }
  if (scale == Scale::Linear) return niceTicks(low, high, count);
  std::vector<double> all;
  for (const double value : kAccuracies)
    if (const double at = place(value); at >= 0 && at <= 1 + 1e-9) all.push_back(value);
  if (all.size() >= 3) return apart(all);
  return niceTicks(1 - std::pow(10, -low), 1 - std::pow(10, -high), count);  // within two of them
}

std::vector<double> Axis::apart(const std::vector<double>& ticks) const {
  std::vector<double> kept;  // from the highest down, so that 100 % is among them
  for (auto tick = ticks.rbegin(); tick != ticks.rend(); ++tick)
    if (kept.empty() || place(kept.back()) - place(*tick) >= kApart) kept.push_back(*tick);
  std::ranges::reverse(kept);
  return kept;
}

std::vector<double> niceTicks(double low, double high, int count) {
  if (!(high > low)) return {low};
  const double rough = (high - low) / std::max(count, 1), power = std::pow(10, std::floor(std::log10(rough)));
  const double share = rough / power;
  const double step = (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10) * power;
  std::vector<double> ticks;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i)
    ticks.push_back(i * step);
  return ticks;
}

std::vector<double> logTicks(double low, double high) {
  std::vector<double> ticks;
  const bool few = std::log10(high / low) < 2;
  for (double power = std::pow(10, std::floor(std::log10(low))); power <= high * (1 + 1e-9); power *= 10)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = power * factor;
      if ((factor == 1 || few) && tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9))
        ticks.push_back(tick);
    }
  return ticks;
}

std::string tickText(double value) {
  if (std::abs(value) >= 1000 && std::abs(value) < 1e7) return groupedNumber(value);
  return fmt::format("{:.4g}", std::abs(value) < 1e-12 ? 0.0 : value);
}

}  // namespace muster::detail
