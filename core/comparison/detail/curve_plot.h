#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "muster/core/comparison/detail/axis.h"
#include "muster/core/comparison/detail/figure.h"

namespace muster::detail {

/// One point of a curve: a mean, and one standard deviation down and up.
struct CurvePoint {
  double x = 0, low = 0, mean = 0, high = 0;
};

struct Curve {
  std::string name;
  std::size_t style = 0;  ///< its number among the arms
  std::vector<CurvePoint> points = {};
  std::string marks = {};  ///< of its wall times, timeMarks
};

struct PlotOptions {
  std::string name, title;
  std::string across;  ///< the title of the axis
  Scale up = Scale::Linear, along = Scale::Linear;
  bool percent = false;
  std::optional<double> line = {};  ///< a horizontal one
  double leastError = 1e-5;         ///< see Axis
  bool times = false;               ///< it shows wall times: its file has a column of marks
  std::string note = {};            ///< a line below the legend
};

/// Draws curves with their bands.
Plot curvePlot(const PlotOptions& options, const std::vector<Curve>& curves);

}  // namespace muster::detail
