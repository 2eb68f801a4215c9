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

/// How a line is drawn, the same in plots and legends.
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

/// A line plot with bands as an SVG element to be put into HTML. What is neither line nor band takes its
/// colour from the page's CSS: the classes `grid`, `frame`, `mark`, and text from the element itself. Points
/// without a place on an axis (see PlotScale) are left out, and with them lines that have no others.
std::string svgPlot(const Plot& plot);

/// The plot as a file of its own: on white, with its title above and a legend below.
std::string svgDocument(const Plot& plot);

/// Whether a plot has a line: a point with a place on both axes.
bool drawsAnything(const Plot& plot);

/// A short piece of a line, for a legend.
std::string svgSample(const LineStyle& style);

/// Text as HTML and SVG have it, in elements and quoted attributes.
std::string escapeMarkup(std::string_view text);

}  // namespace example
