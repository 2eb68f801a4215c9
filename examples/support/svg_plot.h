#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "examples/support/plot_scale.h"

namespace example {

struct PlotAxis {
  std::string label;  ///< with its unit
  ScaleKind scale = ScaleKind::Linear;
};

struct PlotPoint {
  double x = 0, y = 0;
  double low = 0, high = 0;  ///< of the band around y
};

/// How a line is drawn, in the plot and its legend.
struct LineStyle {
  std::string colour;  ///< CSS
  std::string dashes;  ///< as stroke-dasharray has it; empty: solid
};

struct PlotLine {
  std::string name;
  LineStyle style;
  std::vector<PlotPoint> points;
};

struct Plot {
  std::string title;
  PlotAxis x, y;
  std::vector<PlotLine> lines;
  std::optional<double> mark;  ///< a value of y to draw a line at
};

/// A line plot with bands as an SVG file: on white, with its title above and a legend below. Points without a
/// place on an axis (see PlotScale) are left out, and with them lines that have no others.
std::string svgDocument(const Plot& plot);

/// Text as HTML and SVG have it, in elements and quoted attributes.
std::string escapeMarkup(std::string_view text);

}  // namespace example
