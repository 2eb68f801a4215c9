#include "muster/core/comparison/detail/plots.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "muster/core/comparison/detail/curve_plot.h"
#include "muster/core/comparison/detail/others_load.h"
#include "muster/core/comparison/detail/tables.h"

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
    if (!points.empty()) curves.push_back({c.grid.arms[arm].name, arm, std::move(points), {}});
  }
  return curves;
}

/// The difference's interval; without a spread the difference itself, twice.
std::array<double, 2> intervalOf(const ArmSummary& arm) {
  const auto& d = arm.difference;
  return d.hasSpread() ? std::array{d.low(), d.high()} : std::array{d.mean, d.mean};
}

/// One arm's difference and its interval, if it has one, at the height `y`. @param x  places a difference.
std::string differenceRow(const ArmSummary& arm, double factor, double names, double y, auto&& x) {
  const auto [low, high] = intervalOf(arm);
  const auto line = arm.difference.hasSpread() ? svgLine(x(low * factor), y, x(high * factor), y,
                                                         "stroke-width=\"2\" stroke=\"#0072b2\"")
                                               : std::string();
  return svgText(names - 10, y + 4, "end", arm.name) + line +
         fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#0072b2\"/>\n",
                     x(arm.difference.mean * factor), y);
}

std::string differenceSvg(const std::string& title, const std::vector<const ArmSummary*>& arms,
                          double factor) {
  constexpr double kNames = 300;  // the width of the names
  std::vector<double> values{0};
  for (const auto* arm : arms)
    for (const double value : intervalOf(*arm)) values.push_back(value * factor);
  const Axis axis = Axis::of(values, Scale::Linear, 0.05);
  const double bottom = kFigureTop + kFigureRow * static_cast<double>(arms.size()) + 6;
  const auto x = [&](double value) {
    return kNames + axis.place(value) * (kFigureWidth - kNames - kFigureRight);
  };
  std::string svg = svgOpening(title, bottom + 24);
  for (const double tick : axis.ticks(8)) svg += svgTick(x(tick), bottom, tick);
  svg += svgLine(x(0), kFigureTop, x(0), bottom, "stroke=\"currentColor\"");
  double y = kFigureTop + kFigureRow / 2;
  for (const auto* arm : arms) {
    svg += differenceRow(*arm, factor, kNames, y, x);
    y += kFigureRow;
  }
  return svg + "</svg>\n";
}

/// Each arm's difference to the baseline with its interval, a row each; without an SVG if no arm has one.
Plot differencePlot(const ComparisonSummary& s) {
  Plot plot{.name = "differences",
            .title = fmt::format("Difference to {}{}, 95 % intervals", s.baseline,
                                 s.metric.points.empty() ? "" : ", points"),
            .svg = {},
            .values = {{"arm", "low", "mean", "high", "seeds"}}};
  std::vector<const ArmSummary*> arms;
  for (const auto& arm : s.arms) {
    const auto& d = arm.difference;
    if (d.count < 2) continue;
    const auto number = [&](double value) { return figureNumber(value * s.metric.factor); };
    plot.values.push_back({arm.name, d.hasSpread() ? number(d.low()) : "", number(d.mean),
                           d.hasSpread() ? number(d.high()) : "", fmt::format("{}", d.count)});
    arms.push_back(&arm);
  }
  if (!arms.empty()) plot.svg = differenceSvg(plot.title, arms, s.metric.factor);
  return plot;
}

std::vector<Curve> projections(const Comparison& c, const ComparisonSummary& s) {
  std::vector<Curve> curves;
  std::vector<std::int64_t> own;
  for (const auto& arm : s.arms) own.push_back(arm.workers);
  for (std::size_t i = 0; c.link && i < c.grid.arms.size(); ++i) {
    const auto& arm = *std::ranges::find(s.arms, c.grid.arms[i].name, &ArmSummary::name);
    if (arm.workers < 2 || !arm.trained()) continue;
    auto& curve = curves.emplace_back(Curve{.name = arm.name, .style = i});
    for (const auto workers : projectedWorkers(own)) {
      const double speed = samplesPerSecond(arm, projectOnLink(*c.link, arm.summed, arm.cost, workers));
      curve.points.push_back({static_cast<double>(workers), speed, speed, speed});
    }
  }
  return curves;
}

/// Adds a plot if one of its curves has more than one test, since others would be dots.
void add(std::vector<Plot>& plots, const PlotOptions& options, const std::vector<Curve>& curves) {
  if (std::ranges::any_of(curves, [](const Curve& curve) { return curve.points.size() > 1; }))
    plots.push_back(curvePlot(options, curves));
}

/// Marks curves of wall times as the tables mark them, and explains these marks.
void markTimes(const Comparison& c, const ComparisonSummary& s, PlotOptions& options,
               std::vector<Curve>& curves) {
  std::set<char> used;
  for (auto& curve : curves) {
    const auto& arm = *std::ranges::find(s.arms, curve.name, &ArmSummary::name);
    curve.marks = timeMarks(arm.oversubscribed, arm.loaded);
    used.insert(curve.marks.begin(), curve.marks.end());
  }
  std::vector<std::string> notes;
  if (used.contains('*')) notes.push_back("* threads shared cores");
  if (used.contains('!')) notes.push_back("! measured under load of other programs");
  if (hasUnknownLoad(c))
    notes.push_back(
        fmt::format("load is not known, and not marked, for less than {} s", OthersLoad::kShortest));
  options.times = true;
  options.note = fmt::format("{}", fmt::join(notes, "; "));
}

constexpr auto kBySamples = "samples trained, all workers";

auto valueOf(auto member) {
  return [member](const RunPoint& point) { return static_cast<double>(point.*member); };
}

/// What the last point of a curve is, in a title.
std::string_view endOf(const Comparison& c) {
  return c.restoresBest ? "; the last point is of the best model, which early stopping has restored" : "";
}

void addScores(const Comparison& c, const ComparisonSummary& s, std::vector<Plot>& plots) {
  const bool percent = s.metric.factor == 100;
  const auto examples = static_cast<double>(std::max<std::int64_t>(c.grid.testExamples, 0));
  const double leastError = examples > 0 ? std::max(0.5 / examples, 1e-5) : 1e-5;
  const auto score = [&](const char* name, const char* by, const char* across, auto along, auto wanted,
                         bool times = false) {
    PlotOptions options{.name = name,
                        .title = fmt::format("{} on the test data, by {}{}", s.metric.name, by, endOf(c)),
                        .across = across,
                        .up = percent ? Scale::Error : Scale::Linear,
                        .percent = percent,
                        .line = s.target,
                        .leastError = leastError};
    auto curves = curvesOf(c, valueOf(along), valueOf(&RunPoint::score), wanted);
    if (times) markTimes(c, s, options, curves);
    add(plots, options, curves);
  };
  const auto all = [](const CurvePoint&) { return true; };
  const auto sent = [](const CurvePoint& point) { return point.x > 0; };
  score("score-by-samples", "samples", kBySamples, &RunPoint::samples, all);
  score("score-by-seconds", "time", "seconds of training", &RunPoint::seconds, all, true);
  score("score-by-bytes", "what a worker sends", "bytes sent by a worker", &RunPoint::bytes, sent);
}

/// Losses and distances, on logarithmic axes.
void addCourses(const Comparison& c, std::vector<Plot>& plots) {
  const auto course = [&](const char* name, std::string title, double RunPoint::*value) {
    add(plots, {.name = name, .title = std::move(title), .across = kBySamples, .up = Scale::Log},
        curvesOf(c, valueOf(&RunPoint::samples), valueOf(value),
                 [](const CurvePoint& point) { return point.mean > 0; }));
  };
  course("test-loss", fmt::format("Loss on the test data{}", endOf(c)), &RunPoint::loss);
  course("training-loss", "Loss of the replicas on the batches they learn from", &RunPoint::trainingLoss);
  course("distance", "Distance of the replicas from their mean before a merge, relative",
         &RunPoint::distance);
}

}  // namespace

std::vector<Plot> plotsOf(const Comparison& c, const ComparisonSummary& s) {
  std::vector<Plot> plots;
  if (auto differences = differencePlot(s); !differences.svg.empty()) plots.push_back(std::move(differences));
  addScores(c, s, plots);
  addCourses(c, plots);
  PlotOptions speed{.name = "projected-speed",
                    .title = "Projected samples per second",
                    .across = "workers",
                    .up = Scale::Log,
                    .along = Scale::Log};
  auto curves = projections(c, s);
  markTimes(c, s, speed, curves);
  add(plots, speed, curves);
  return plots;
}

}  // namespace muster::detail
