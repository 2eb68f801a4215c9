#include "muster/core/comparison/detail/curve_plot.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::detail {
namespace {

constexpr double kHeight = 380, kLeft = 74, kBottom = 46;

/// A curve with its band, in the coordinates of the figure.
std::string drawn(const Curve& curve, auto&& x, auto&& y) {
  std::string above, below, middle;
  for (const auto& p : curve.points) {
    middle += fmt::format("{:.1f},{:.1f} ", x(p.x), y(p.mean));
    above += fmt::format("{:.1f},{:.1f} ", x(p.x), y(p.high));
  }
  for (auto p = curve.points.rbegin(); p != curve.points.rend(); ++p)
    below += fmt::format("{:.1f},{:.1f} ", x(p->x), y(p->low));
  const auto stroke = strokeOf(curve.style);
  return fmt::format(
      "<polygon points=\"{}{}\" fill=\"{}\" fill-opacity=\"0.12\"/>\n<polyline points=\"{}\" fill=\"none\" "
      "stroke-width=\"1.8\" {}/>\n",
      above, below, colourOf(curve.style), middle, stroke);
}

/// The curves with their names and marks, and the note below them.
std::string legend(const std::vector<Curve>& curves, const std::string& note, double top) {
  std::size_t longest = 0;
  for (const auto& curve : curves) longest = std::max(longest, curve.name.size());
  const std::size_t columns = longest > 46 ? 1 : 2;
  std::string svg;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const double x = kLeft + static_cast<double>(i % columns) * (kFigureWidth - kLeft) / 2;
    const double y = top + static_cast<double>(i / columns) * kFigureRow;
    svg += svgLine(x, y - 4, x + 34, y - 4, "stroke-width=\"1.8\" " + strokeOf(curves[i].style));
    svg +=
        svgText(x + 42, y, "start", curves[i].name + (curves[i].marks.empty() ? "" : " ") + curves[i].marks);
  }
  if (!note.empty())
    svg += svgText(kLeft, top + static_cast<double>((curves.size() + columns - 1) / columns) * kFigureRow,
                   "start", note);
  return svg;
}

double legendHeight(const std::vector<Curve>& curves, const std::string& note) {
  return kFigureRow * static_cast<double>(curves.size() + (note.empty() ? 1 : 2));
}

/// The rows of the plot's file.
Cells valuesOf(const PlotOptions& o, const std::vector<Curve>& curves) {
  Cells rows{{"arm", o.across, "low", "mean", "high"}};
  if (o.times) rows.front().push_back("marks");
  for (const auto& curve : curves)
    for (const auto& p : curve.points) {
      rows.push_back(
          {curve.name, figureNumber(p.x), figureNumber(p.low), figureNumber(p.mean), figureNumber(p.high)});
      if (o.times) rows.back().push_back(curve.marks);
    }
  return rows;
}

}  // namespace

Plot curvePlot(const PlotOptions& o, const std::vector<Curve>& curves) {
  Plot plot{.name = o.name, .title = o.title, .svg = {}, .values = valuesOf(o, curves)};
  const bool log = o.up == Scale::Log;
  std::vector<double> xs, ys;
  for (const auto& curve : curves)
    for (const auto& p : curve.points) {
      xs.push_back(p.x);
      ys.insert(ys.end(), {p.mean, log && p.low <= 0 ? p.mean : p.low, p.high});
    }
  const Axis across = Axis::of(xs, o.along, 0.02), up = Axis::of(ys, o.up, 0.04, o.leastError);
  const double right = kFigureWidth - kFigureRight, bottom = kHeight - kBottom;
  const auto x = [&](double value) { return kLeft + across.place(value) * (right - kLeft); };
  const auto y = [&](double value) {
    return bottom - std::clamp(log && value <= 0 ? 0 : up.place(value), 0.0, 1.0) * (bottom - kFigureTop);
  };
  plot.svg = svgOpening(o.title, kHeight + legendHeight(curves, o.note));
  for (const double tick : across.ticks(8)) plot.svg += svgTick(x(tick), bottom, tick);
  for (const double tick : up.ticks(7))
    plot.svg +=
        svgLine(kLeft, y(tick), right, y(tick), kGridLine) +
        svgText(kLeft - 6, y(tick) + 4, "end", o.percent ? tickText(tick * 100) + " %" : tickText(tick));
  if (o.line && up.place(*o.line) > 0 && up.place(*o.line) < 1)
    plot.svg +=
        svgLine(kLeft, y(*o.line), right, y(*o.line), "stroke=\"currentColor\" stroke-dasharray=\"1 3\"");
  for (const auto& curve : curves) plot.svg += drawn(curve, x, y);
  plot.svg += svgText((kLeft + right) / 2, bottom + 36, "middle", o.across) +
              legend(curves, o.note, kHeight + kFigureRow / 2);
  plot.svg += "</svg>\n";
  return plot;
}

}  // namespace muster::detail
