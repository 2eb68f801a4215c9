#pragma once

#include <string>
#include <vector>

namespace example {

enum class ScaleKind {
  Linear,    ///< from 0
  Log,       ///< of positive numbers
  Accuracy,  ///< by the logarithm of the error 1 - a, so that 98 to 99 % is as far as 80 to 90 %
};

/// Where a value lies on an axis.
class PlotScale {
 public:
  struct Tick {
    double value;
    std::string label;
  };

  /// An axis that holds all `values` for which it has a place; something sensible where there are none.
  PlotScale(ScaleKind kind, const std::vector<double>& values);

  /// Whether the value has a place: it is finite, and on a logarithmic axis positive.
  bool holds(double value) const;
  /// 0 at the axis's beginning, 1 at its end; values beyond, or without a place, go to the nearer end.
  double at(double value) const;
  /// At least two, with room for them.
  std::vector<Tick> ticks() const;

 private:
  double transformed(double value) const;
  double restored(double transformed) const;
  std::vector<Tick> linearTicks() const;
  std::vector<Tick> logTicks() const;
  std::vector<Tick> accuracyTicks() const;
  /// At even steps of the value: for a range that has fewer than two of the usual ticks.
  std::vector<Tick> evenTicks() const;

  ScaleKind kind_;
  bool counts_ = true;         // all values are whole numbers
  double low_ = 0, high_ = 1;  // transformed
};

}  // namespace example
