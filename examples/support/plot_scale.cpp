#include "examples/support/plot_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "examples/support/number_text.h"

namespace example {
namespace {

constexpr double kBestAccuracy = 0.9999;  // beyond it the error has no logarithm to speak of
constexpr double kAccuracyTicks[] = {0,    0.3,  0.5,   0.7,   0.8,   0.9,    0.95,         0.97,
                                     0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, kBestAccuracy};

/// The largest of 1, 2 and 5 times a power of ten that is at most `length`.
double niceStep(double length) {
  const double power = std::pow(10, std::floor(std::log10(length)));
  const double leading = length / power;
  return power * (leading >= 5 ? 5 : leading >= 2 ? 2 : 1);
}

}  // namespace

PlotScale::PlotScale(ScaleKind kind, const std::vector<double>& values) : kind_(kind) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values)
    if (holds(value)) {
      low = std::min(low, transformed(value));
      high = std::max(high, transformed(value));
      counts_ = counts_ && value == std::floor(value);
    }
  if (low > high) return;
  if (kind == ScaleKind::Linear) {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
  }
  const double least = kind == ScaleKind::Linear ? 1e-9 : 0.1;  // of a range
  if (high - low < least) high = low + (kind == ScaleKind::Linear ? 1 : least);
  const double margin = kind == ScaleKind::Linear ? 0 : 0.03 * (high - low);
  low_ = low - margin;
  high_ = high + margin;
}

bool PlotScale::holds(double value) const {
  return std::isfinite(value) && (kind_ != ScaleKind::Log || value > 0);
}

double PlotScale::transformed(double value) const {
  if (kind_ == ScaleKind::Log) return std::log10(value);
  if (kind_ == ScaleKind::Accuracy) return -std::log10(1 - std::min(value, kBestAccuracy));
  return value;
}

double PlotScale::restored(double transformed) const {
  if (kind_ == ScaleKind::Log) return std::pow(10, transformed);
  if (kind_ == ScaleKind::Accuracy) return 1 - std::pow(10, -transformed);
  return transformed;
}

double PlotScale::at(double value) const {
  if (!holds(value)) return value > 0 ? 1 : 0;
  return std::clamp((transformed(value) - low_) / (high_ - low_), 0.0, 1.0);
}

std::vector<PlotScale::Tick> PlotScale::ticks() const {
  if (kind_ == ScaleKind::Log) return logTicks();
  if (kind_ == ScaleKind::Accuracy) return accuracyTicks();
  return linearTicks();
}

std::vector<PlotScale::Tick> PlotScale::linearTicks() const {
  const double step = std::max(niceStep((high_ - low_) / 3), counts_ ? 1.0 : 0.0);  // no half epochs
  std::vector<Tick> ticks;
  for (double n = std::ceil(low_ / step); n * step <= high_ * (1 + 1e-9); ++n)
    ticks.push_back({n * step, shortNumber(n * step)});
  return ticks;
}

std::vector<PlotScale::Tick> PlotScale::logTicks() const {
  const double decades = high_ - low_;
  const double every = std::max(1.0, std::round(decades / 5));
  std::vector<Tick> ticks;
  for (double power = std::floor(low_); power <= high_; power += every)
    for (const double leading : {1., 2., 5.}) {
      const double value = leading * std::pow(10, power);
      const bool within = std::log10(value) >= low_ && std::log10(value) <= high_;
      if (within && (leading == 1 || decades < 2)) ticks.push_back({value, shortNumber(value)});
    }
  return ticks.size() < 2 ? evenTicks() : ticks;
}

std::vector<PlotScale::Tick> PlotScale::accuracyTicks() const {
  std::vector<Tick> ticks;
  for (const double value : kAccuracyTicks)
    if (transformed(value) >= low_ && transformed(value) <= high_)
      ticks.push_back({value, percentText(value)});
  return ticks.size() < 2 ? evenTicks() : ticks;
}

std::vector<PlotScale::Tick> PlotScale::evenTicks() const {
  const double low = restored(low_), high = restored(high_);
  const double step = niceStep((high - low) / 3);
  std::vector<Tick> ticks;
  for (double n = std::ceil(low / step); n * step <= high; ++n) {
    const double value = n * step;
    ticks.push_back({value, kind_ == ScaleKind::Accuracy ? percentText(value) : shortNumber(value)});
  }
  return ticks;
}

}  // namespace example
