#include "muster/core/comparison/detail/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "muster/core/comparison/detail/curve_plot.h"

namespace muster::detail {
namespace {

/// The mean of an arm's runs at their k-th tests, as far as all have one.
std::vector<CurvePoint> meanCurve(const std::vector<RunRecord>& runs, auto across, auto value) {
  std::size_t count = std::numeric_limits<std::size_t>::max();
  std::vector<const RunRecord*> good;
  for (const auto& run : runs)
    if (!run.failed()) {
      good.push_back(&run);
      count = std::min(count, run.points.size());
    }
  std::vector<CurvePoint> points;
  for (std::size_t k = 0; !good.empty() && k < count; ++k) {
    std::vector<double> xs, ys;
    for (const auto* run : good) {
      xs.push_back(across(run->points[k]));
      ys.push_back(value(run->points[k]));
    }
    const auto y = sampleMeanOf(ys);
    points.push_back({sampleMeanOf(xs).mean, y.mean - y.deviation, y.mean, y.mean + y.deviation});
  }
  return points;
}

std::vector<Curve> curvesOf(const Comparison& c, auto across, auto value, auto wanted) {
  std::vector<Curve> curves;
  for (std::size_t arm = 0; arm < c.runs.size(); ++arm) {
    auto points = meanCurve(c.runs[arm], across, value);
    std::erase_if(points, [&](const CurvePoint& p) { return !wanted(p); });
    if (!points.empty()) curves.push_back({c.grid.arms[arm].name, arm, std::move(points)});
  }
  return curves;
}

/// Each arm's difference to the baseline with its interval, a row each.
Plot differencePlot(const ComparisonSummary& s) {
  Plot plot{.name = "differences",
            .title = fmt::format("Difference to {}{}, 95 % intervals", s.baseline,
                                 s.metric.points.empty() ? "" : ", points"),
            .svg = {},
            .values = {{"arm", "low", "mean", "high", "seeds"}}};
  std::vector<const ArmSummary*> arms;
  std::vector<double> values{0};
  for (const auto& arm : s.arms)
    if (arm.difference.count > 1) {
      arms.push_back(&arm);
      for (const double value : {arm.difference.low(), arm.difference.high()})
        values.push_back(value * s.metric.factor);
    }
  if (arms.empty()) return plot;
  const Axis axis = Axis::of(values, Scale::Linear, 0.05);
  constexpr double kNames = 300;
  const double bottom = kFigureTop + kFigureRow * static_cast<double>(arms.size()) + 6;
  const auto x = [&](double value) {
    return kNames + axis.place(value) * (kFigureWidth - kNames - kFigureRight);
  };
  plot.svg = svgOpening(plot.title, bottom + 24);
  for (const double tick : axis.ticks(8)) plot.svg += svgTick(x(tick), bottom, tick);
  plot.svg += svgLine(x(0), kFigureTop, x(0), bottom, "stroke=\"currentColor\"");
  double y = kFigureTop + kFigureRow / 2;
  for (const auto* arm : arms) {
    const auto& d = arm->difference;
    const double factor = s.metric.factor;
    plot.svg += svgText(kNames - 10, y + 4, "end", arm->name);
    plot.svg +=
        svgLine(x(d.low() * factor), y, x(d.high() * factor), y, "stroke-width=\"2\" stroke=\"#0072b2\"");
    plot.svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#0072b2\"/>\n",
                            x(d.mean * factor), y);
    plot.values.push_back({arm->name, figureNumber(d.low() * factor), figureNumber(d.mean * factor),
                           figureNumber(d.high() * factor), fmt::format("{}", d.count)});
    y += kFigureRow;
  }
  plot.svg += "</svg>\n";
  return plot;
}

std::vector<Curve> projections(const Comparison& c, const ComparisonSummary& s) {
  std::vector<Curve> curves;
  std::vector<std::int64_t> own;
  for (const auto& arm : s.arms) own.push_back(arm.workers);
  for (std::size_t i = 0; c.link && i < c.grid.arms.size(); ++i) {
    const auto& arm = *std::ranges::find(s.arms, c.grid.arms[i].name, &ArmSummary::name);
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

std::vector<Plot> plotsOf(const Comparison& c, const ComparisonSummary& s) {
  std::vector<Plot> plots;
  if (auto differences = differencePlot(s); !differences.svg.empty()) plots.push_back(std::move(differences));
  const auto all = [](const CurvePoint&) { return true; };
  const auto positive = [](const CurvePoint& p) { return p.mean > 0; };
  const auto of = [](auto member) {
    return [member](const RunPoint& p) { return static_cast<double>(p.*member); };
  };
  const auto add = [&](const PlotOptions& options, const std::vector<Curve>& curves) {
    const bool several =
        std::ranges::any_of(curves, [](const Curve& curve) { return curve.points.size() > 1; });
    if (several) plots.push_back(curvePlot(options, curves));
  };
  const bool percent = s.metric.factor == 100;
  const auto sent = [](const CurvePoint& p) { return p.x > 0; };
  const auto score = of(&RunPoint::score);
  const auto scorePlot = [&](const char* name, const std::string& by, const char* across) {
    return PlotOptions{.name = name,
                       .title = fmt::format("{} on the test data, by {}", s.metric.name, by),
                       .across = across,
                       .up = percent ? Scale::Error : Scale::Linear,
                       .percent = percent,
                       .line = s.target};
  };
  add(scorePlot("score-by-samples", "samples", "samples trained, all workers"),
      curvesOf(c, of(&RunPoint::samples), score, all));
  add(scorePlot("score-by-seconds", "time", "seconds of training"),
      curvesOf(c, of(&RunPoint::seconds), score, all));
  add(scorePlot("score-by-bytes", "what a worker sends", "bytes sent by a worker"),
      curvesOf(c, of(&RunPoint::bytes), score, sent));
  add({.name = "test-loss",
       .title = "Loss on the test data",
       .across = "samples trained, all workers",
       .up = Scale::Log},
      curvesOf(c, of(&RunPoint::samples), of(&RunPoint::loss), positive));
  add({.name = "training-loss",
       .title = "Loss of the replicas on the batches they learn from",
       .across = "samples trained, all workers",
       .up = Scale::Log},
      curvesOf(c, of(&RunPoint::samples), of(&RunPoint::trainingLoss), positive));
  add({.name = "distance",
       .title = "Distance of the replicas from their mean before a merge, relative",
       .across = "samples trained, all workers",
       .up = Scale::Log},
      curvesOf(c, of(&RunPoint::samples), of(&RunPoint::distance), positive));
  add({.name = "projected-speed",
       .title = "Projected samples a second",
       .across = "workers",
       .up = Scale::Log,
       .along = Scale::Log},
      projections(c, s));
  return plots;
}

}  // namespace muster::detail
