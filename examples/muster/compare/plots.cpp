#include "examples/muster/compare/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "examples/muster/compare/svg.h"

namespace comparing {
namespace {

constexpr double kWidth = 760, kHeight = 380, kLeft = 74, kRight = 16, kTop = 12, kBottom = 46;
constexpr double kRow = 20;  // of a legend or of an arm

/// The page's colours (charts.js): Okabe and Ito's first, any two distinguishable to the colour-blind.
constexpr std::array kColours{"#0072b2", "#d55e00", "#007f5f", "#b3478f",
                              "#140385", "#900aec", "#7a3b00", "#45004e"};
constexpr std::array kDashes{"none", "7 3", "2 2", "9 3 2 3", "14 3", "5 2 1 2 1 2", "1 3", "12 2 4 2"};

/// Ticks of accuracies on a scale of errors.
constexpr double kAccuracies[] = {0,    0.2,  0.4,  0.6,   0.7,   0.8,   0.9,    0.93,  0.95,
                                  0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999};

double byError(double accuracy) {
  return -std::log10(std::clamp(1 - accuracy, 1e-5, 2.0));
}
double byLog(double value) {
  return std::log10(value);
}

/// The smallest and the largest of some values, a little wider.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void pad(double share) {
    const double more = high > low ? (high - low) * share : std::max(std::abs(low) * share, 1e-9);
    low -= more;
    high += more;
  }
};

Axis axisOf(const std::vector<double>& values, double (*transform)(double), double pad) {
  Axis axis;
  if (transform != nullptr) axis.transform = transform;
  Range range;
  for (const double value : values) range.add(axis.transform(value));
  range.pad(pad);
  axis.low = range.low;
  axis.high = range.high;
  return axis;
}

std::vector<double> ticksOf(const Axis& axis, bool error, bool log, int count) {
  if (log) return logTicks(std::pow(10, axis.low), std::pow(10, axis.high));
  if (!error) return niceTicks(axis.low, axis.high, count);
  std::vector<double> ticks;
  for (const double value : kAccuracies)
    if (const double at = axis.place(value); at >= 0 && at <= 1) ticks.push_back(value);
  if (ticks.size() >= 3) return ticks;
  return niceTicks(1 - std::pow(10, -axis.low), 1 - std::pow(10, -axis.high), count);  // within two of them
}

std::string text(double x, double y, const char* anchor, std::string_view words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(words));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2,
                     style);
}

constexpr std::string_view kGrid = "stroke=\"#888\" stroke-opacity=\"0.5\" stroke-width=\"0.5\"";

std::string opening(const std::string& title, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"currentColor\" role=\"img\">\n<title>{2}</title>\n",
      kWidth, height, escaped(title));
}

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
      above, below, kColours[curve.style % kColours.size()], middle, stroke);
}

std::string legend(const std::vector<Curve>& curves, double top) {
  std::size_t longest = 0;
  for (const auto& curve : curves) longest = std::max(longest, curve.name.size());
  const std::size_t columns = longest > 46 ? 1 : 2;
  std::string svg;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const double x = kLeft + static_cast<double>(i % columns) * (kWidth - kLeft) / 2;
    const double y = top + static_cast<double>(i / columns) * kRow;
    svg += line(x, y - 4, x + 34, y - 4, "stroke-width=\"1.8\" " + strokeOf(curves[i].style));
    svg += text(x + 42, y, "start", curves[i].name);
  }
  return svg;
}

double legendHeight(const std::vector<Curve>& curves) {
  return kRow * static_cast<double>(curves.size() + 1);
}

std::string number(double value) {
  return fmt::format("{:.10g}", value);
}

/// The mean of an arm's runs at their k-th tests, as far as all have one.
std::vector<CurvePoint> meanCurve(const std::vector<const RunRecord*>& runs, auto across, auto value) {
  std::size_t count = std::numeric_limits<std::size_t>::max();
  std::vector<const RunRecord*> good;
  for (const auto* run : runs)
    if (!run->failed()) {
      good.push_back(run);
      count = std::min(count, run->points.size());
    }
  std::vector<CurvePoint> points;
  for (std::size_t k = 0; !good.empty() && k < count; ++k) {
    std::vector<double> xs, ys;
    for (const auto* run : good) {
      xs.push_back(across(run->points[k]));
      ys.push_back(value(run->points[k]));
    }
    const auto y = spreadOf(ys);
    points.push_back({spreadOf(xs).mean, y.mean - y.deviation, y.mean, y.mean + y.deviation});
  }
  return points;
}

std::vector<Curve> curvesOf(const Comparison& c, auto across, auto value, auto wanted) {
  std::vector<Curve> curves;
  for (std::size_t arm = 0; arm < c.grid.arms.size(); ++arm) {
    auto points = meanCurve(c.runs[arm], across, value);
    std::erase_if(points, [&](const CurvePoint& p) { return !wanted(p); });
    if (!points.empty()) curves.push_back({c.grid.arms[arm].name, arm, std::move(points)});
  }
  return curves;
}

/// Each arm's difference to the baseline with its interval, a row each.
Plot differencePlot(const Comparison& c) {
  Plot plot{.name = "differences",
            .title = fmt::format("Difference to {}{}, 95 % intervals", c.baseline,
                                 c.metric.points.empty() ? "" : ", points"),
            .svg = {},
            .values = {{"arm", "low", "mean", "high", "seeds"}}};
  std::vector<const ArmSummary*> arms;
  std::vector<double> values{0};
  for (const auto& arm : c.arms)
    if (arm.difference.count > 1) {
      arms.push_back(&arm);
      for (const double value : {arm.difference.low(), arm.difference.high()})
        values.push_back(value * c.metric.factor);
    }
  if (arms.empty()) return plot;
  const Axis axis = axisOf(values, nullptr, 0.05);
  constexpr double kNames = 300;
  const double bottom = kTop + kRow * static_cast<double>(arms.size()) + 6;
  const auto x = [&](double value) { return kNames + axis.place(value) * (kWidth - kNames - kRight); };
  plot.svg = opening(plot.title, bottom + 24);
  for (const double tick : niceTicks(axis.low, axis.high, 8)) {
    plot.svg +=
        line(x(tick), kTop, x(tick), bottom, kGrid) + text(x(tick), bottom + 16, "middle", tickText(tick));
  }
  plot.svg += line(x(0), kTop, x(0), bottom, "stroke=\"currentColor\"");
  double y = kTop + kRow / 2;
  for (const auto* arm : arms) {
    const auto& d = arm->difference;
    const double factor = c.metric.factor;
    plot.svg += text(kNames - 10, y + 4, "end", arm->name);
    plot.svg +=
        line(x(d.low() * factor), y, x(d.high() * factor), y, "stroke-width=\"2\" stroke=\"#0072b2\"");
    plot.svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#0072b2\"/>\n",
                            x(d.mean * factor), y);
    plot.values.push_back({arm->name, number(d.low() * factor), number(d.mean * factor),
                           number(d.high() * factor), fmt::format("{}", d.count)});
    y += kRow;
  }
  plot.svg += "</svg>\n";
  return plot;
}

std::vector<Curve> projections(const Comparison& c) {
  std::vector<Curve> curves;
  std::vector<std::int64_t> own;
  for (const auto& arm : c.arms) own.push_back(arm.workers);
  for (std::size_t i = 0; c.link && i < c.grid.arms.size(); ++i) {
    const auto& arm = *std::ranges::find(c.arms, c.grid.arms[i].name, &ArmSummary::name);
    if (arm.workers < 2 || !arm.trained()) continue;
    auto& curve = curves.emplace_back(Curve{arm.name, i, {}});
    for (const auto workers : projectedWorkers(own)) {
      const double speed = samplesPerSecond(arm, project(*c.link, arm.summed, arm.cost, workers));
      curve.points.push_back({static_cast<double>(workers), speed, speed, speed});
    }
  }
  return curves;
}

}  // namespace

std::string strokeOf(std::size_t style) {
  const std::size_t colours = kColours.size(), dash = style / 2 + style / colours;
  // Each colour has each of the dashes once among the first 64; later ones are longer and longer.
  const std::string dashes = style < colours * kDashes.size() ? kDashes[dash % kDashes.size()]
                                                              : fmt::format("{} 3 2 3", 8 + style / colours);
  return fmt::format("stroke=\"{}\" stroke-dasharray=\"{}\"", kColours[style % colours], dashes);
}

Plot curvePlot(const PlotOptions& o, const std::vector<Curve>& curves) {
  Plot plot{
      .name = o.name, .title = o.title, .svg = {}, .values = {{"arm", o.across, "low", "mean", "high"}}};
  std::vector<double> xs, ys;
  for (const auto& curve : curves)
    for (const auto& p : curve.points) {
      xs.push_back(p.x);
      ys.insert(ys.end(), {p.mean, o.log && p.low <= 0 ? p.mean : p.low, p.high});
      plot.values.push_back({curve.name, number(p.x), number(p.low), number(p.mean), number(p.high)});
    }
  const Axis across = axisOf(xs, o.logAcross ? &byLog : nullptr, 0.02);
  const Axis up = axisOf(ys, o.byError ? &byError : o.log ? &byLog : nullptr, 0.04);
  const double right = kWidth - kRight, bottom = kHeight - kBottom;
  const auto x = [&](double value) { return kLeft + across.place(value) * (right - kLeft); };
  const auto y = [&](double value) {
    return bottom - std::clamp(o.log && value <= 0 ? 0 : up.place(value), 0.0, 1.0) * (bottom - kTop);
  };
  plot.svg = opening(o.title, kHeight + legendHeight(curves));
  for (const double tick : ticksOf(across, false, o.logAcross, 8))
    plot.svg +=
        line(x(tick), kTop, x(tick), bottom, kGrid) + text(x(tick), bottom + 16, "middle", tickText(tick));
  for (const double tick : ticksOf(up, o.byError, o.log, 7))
    plot.svg += line(kLeft, y(tick), right, y(tick), kGrid) +
                text(kLeft - 6, y(tick) + 4, "end", o.percent ? tickText(tick * 100) + " %" : tickText(tick));
  if (o.line && up.place(*o.line) > 0 && up.place(*o.line) < 1)
    plot.svg +=
        line(kLeft, y(*o.line), right, y(*o.line), "stroke=\"currentColor\" stroke-dasharray=\"1 3\"");
  for (const auto& curve : curves) plot.svg += drawn(curve, x, y);
  plot.svg += text((kLeft + right) / 2, bottom + 36, "middle", o.across) + legend(curves, kHeight + kRow / 2);
  plot.svg += "</svg>\n";
  return plot;
}

std::vector<Plot> plotsOf(const Comparison& c) {
  std::vector<Plot> plots;
  if (auto differences = differencePlot(c); !differences.svg.empty()) plots.push_back(std::move(differences));
  const auto all = [](const CurvePoint&) { return true; };
  const auto positive = [](const CurvePoint& p) { return p.mean > 0; };
  const auto of = [](auto member) {
    return [member](const Point& p) { return static_cast<double>(p.*member); };
  };
  const auto add = [&](const PlotOptions& options, const std::vector<Curve>& curves) {
    const bool several =
        std::ranges::any_of(curves, [](const Curve& curve) { return curve.points.size() > 1; });
    if (several) plots.push_back(curvePlot(options, curves));
  };
  const bool percent = c.metric.factor == 100;
  const auto sent = [](const CurvePoint& p) { return p.x > 0; };
  const auto score = of(&Point::score);
  const auto scorePlot = [&](const char* name, const std::string& by, const char* across) {
    return PlotOptions{.name = name,
                       .title = fmt::format("{} on the test data, by {}", c.metric.name, by),
                       .across = across,
                       .up = c.metric.name,
                       .byError = percent,
                       .percent = percent,
                       .line = c.target};
  };
  add(scorePlot("score-by-samples", "samples", "samples trained, all workers"),
      curvesOf(c, of(&Point::samples), score, all));
  add(scorePlot("score-by-seconds", "time", "seconds of training"),
      curvesOf(c, of(&Point::seconds), score, all));
  add(scorePlot("score-by-bytes", "what a worker sends", "bytes sent by a worker"),
      curvesOf(c, of(&Point::bytes), score, sent));
  add({.name = "test-loss",
       .title = "Loss on the test data",
       .across = "samples trained, all workers",
       .up = "loss",
       .log = true},
      curvesOf(c, of(&Point::samples), of(&Point::loss), positive));
  add({.name = "training-loss",
       .title = "Loss of the replicas on the batches they learn from",
       .across = "samples trained, all workers",
       .up = "loss",
       .log = true},
      curvesOf(c, of(&Point::samples), of(&Point::trainingLoss), positive));
  add({.name = "distance",
       .title = "Distance of the replicas from their mean before a merge, relative",
       .across = "samples trained, all workers",
       .up = "distance",
       .log = true},
      curvesOf(c, of(&Point::samples), of(&Point::distance), positive));
  add({.name = "projected-speed",
       .title = "Projected samples a second",
       .across = "workers",
       .up = "samples a second",
       .log = true,
       .logAcross = true},
      projections(c));
  return plots;
}

}  // namespace comparing
