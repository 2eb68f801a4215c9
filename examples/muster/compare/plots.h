#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "examples/muster/compare/summary.h"
#include "examples/muster/compare/text_table.h"

namespace comparing {

/// A figure, and the numbers in it.
struct Plot {
  std::string name;  ///< of its files
  std::string title;
  std::string svg;
  Cells values;
};

/// One point of a curve: a mean, and one standard deviation down and up.
struct CurvePoint {
  double x = 0, low = 0, mean = 0, high = 0;
};

struct Curve {
  std::string name;
  std::size_t style = 0;  ///< its number among the arms
  std::vector<CurvePoint> points;
};

struct PlotOptions {
  std::string name, title, across, up;  ///< `across` and `up` are the axes' titles
  /// For accuracies: by the logarithm of the error, so that 98 to 99 % is as far as 80 to 90 %.
  bool byError = false;
  bool percent = false;
  bool log = false, logAcross = false;
  std::optional<double> line = {};  ///< a horizontal one
};

/// Draws curves with their bands.
Plot curvePlot(const PlotOptions& options, const std::vector<Curve>& curves);

/// Colour and dashes of an arm's curve; those of any two arms differ.
std::string strokeOf(std::size_t style);

/// The figures of a comparison: scores and losses by samples, time and bytes, the distance of the replicas,
/// the differences with their intervals, and the projected speed. What has no numbers is left out, and so are
/// curves of a single test, which would be dots.
std::vector<Plot> plotsOf(const Comparison& comparison);

}  // namespace comparing
