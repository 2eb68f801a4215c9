#include "examples/compare_convergence/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

namespace convergence {
namespace {

using Value = std::function<double(const CurvePoint&)>;

double samplesAt(const CurvePoint& point) {
  return point.samples;
}
double secondsAt(const CurvePoint& point) {
  return point.seconds.mean;
}
double bytesAt(const CurvePoint& point) {
  return point.bytes.mean;
}

const example::PlotAxis kSamples{"samples trained, all workers", example::ScaleKind::Linear};
const example::PlotAxis kSeconds{"wall time of training, seconds", example::ScaleKind::Linear};
const example::PlotAxis kBytes{"bytes sent by a worker (log)", example::ScaleKind::Log};
const example::PlotAxis kAccuracy{"test accuracy (log of the error)", example::ScaleKind::Accuracy};
const example::PlotAxis kTestLoss{"test loss, nats (log)", example::ScaleKind::Log};

struct Request {
  const char* title;
  example::PlotAxis x;
  Value xOf;
  example::PlotAxis y;
  example::Spread CurvePoint::*yOf;
};

example::Plot plotOf(const Request& request, const Panel& panel, const Comparison& comparison) {
  example::Plot plot{.title = request.title, .x = request.x, .y = request.y, .lines = {}, .mark = {}};
  if (request.y.scale == example::ScaleKind::Accuracy) plot.mark = comparison.target;
  const auto styles = stylesOf(panel, comparison.grid);
  for (std::size_t i = 0; i < panel.arms.size(); ++i) {
    const auto& arm = comparison.arms[panel.arms[i]];
    example::PlotLine line{arm.name, styles[i], {}};
    for (const auto& point : arm.curve) {
      const example::Spread& y = point.*request.yOf;
      line.points.push_back({request.xOf(point), y.mean, y.mean - y.deviation, y.mean + y.deviation});
    }
    plot.lines.push_back(std::move(line));
  }
  return plot;
}

/// Where `value` stands among the different values of a list, from 0 to 1.
double rank(std::int64_t value, std::vector<std::int64_t> all) {
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  const auto index = std::ranges::find(all, value) - all.begin();
  return all.size() < 2 ? 0 : static_cast<double>(index) / static_cast<double>(all.size() - 1);
}

/// From blue (0) to red (1). Blue and violet are dark to the eye and are made lighter, so that all have a
/// contrast of 3 at least with white and with the page's black.
std::string averagingColour(double place) {
  const double lightness = 45 + 20 * std::sin(std::numbers::pi * place);
  return fmt::format("hsl({:.0f} 75% {:.0f}%)", 200 + 120 * place, lightness);
}

/// Dashes by the strategy's place among those of the grid; the first has none.
std::string dashesOf(const Arm& arm, const Grid& grid) {
  std::vector<std::string> names;
  for (const auto& other : grid.arms)
    if (other.mode == Mode::Strategy && std::ranges::find(names, other.strategy) == names.end())
      names.push_back(other.strategy);
  const auto place = std::ranges::find(names, arm.strategy) - names.begin();
  return place == 0 ? "" : fmt::format("{} {}", 1 + 2 * ((place - 1) % 4), 2 + 2 * ((place - 1) / 4));
}

}  // namespace

std::vector<example::LineStyle> stylesOf(const Panel& panel, const Grid& grid) {
  std::vector<std::int64_t> frequencies;
  for (const auto index : panel.arms)
    if (grid.arms[index].mode == Mode::Averaging || grid.arms[index].mode == Mode::Strategy)
      frequencies.push_back(grid.arms[index].frequency);
  std::vector<example::LineStyle> styles;
  for (const auto index : panel.arms) {
    const Arm& arm = grid.arms[index];
    // Mid-tones, which are seen on white and on black.
    switch (arm.mode) {
      case Mode::Single:
        styles.push_back({"#7d8590", arm.batch == panel.batch ? "" : "2 3"});
        break;
      case Mode::Synchronous:
        styles.push_back({"#d9730d", "10 4"});
        break;
      case Mode::Shared:
        styles.push_back({"#1f9254", "4 3"});
        break;
      case Mode::Strategy:  // of one frequency the same colour, of one strategy the same dashes
        styles.push_back({averagingColour(rank(arm.frequency, frequencies)), dashesOf(arm, grid)});
        break;
      case Mode::Averaging:
        styles.push_back(
            {averagingColour(rank(arm.frequency, frequencies)), arm.synchronousUntil > 0 ? "8 3 2 3" : ""});
    }
  }
  return styles;
}

std::vector<example::Plot> plotsOf(const Panel& panel, const Comparison& comparison) {
  const example::PlotAxis trainingLoss{"training loss, nats (log)", example::ScaleKind::Log};
  const example::PlotAxis distance{"distance / norm of the mean (log)", example::ScaleKind::Log};
  const std::vector<Request> requests{
      {"Test accuracy by samples", kSamples, samplesAt, kAccuracy, &CurvePoint::testAccuracy},
      {"Test accuracy by wall time", kSeconds, secondsAt, kAccuracy, &CurvePoint::testAccuracy},
      {"Test accuracy by bytes sent", kBytes, bytesAt, kAccuracy, &CurvePoint::testAccuracy},
      {"Test loss by samples", kSamples, samplesAt, kTestLoss, &CurvePoint::testLoss},
      {"Test loss by wall time", kSeconds, secondsAt, kTestLoss, &CurvePoint::testLoss},
      {"Test loss by bytes sent", kBytes, bytesAt, kTestLoss, &CurvePoint::testLoss},
      {"Training loss of the replicas by samples", kSamples, samplesAt, trainingLoss,
       &CurvePoint::trainingLoss},
      {"Distance of the replicas from their mean by samples", kSamples, samplesAt, distance,
       &CurvePoint::distance}};
  std::vector<example::Plot> plots;
  for (const auto& request : requests)
    if (auto plot = plotOf(request, panel, comparison); example::drawsAnything(plot))
      plots.push_back(std::move(plot));
  return plots;
}

example::Plot linkPlotOf(const Panel& panel, const Comparison& comparison) {
  example::Plot plot{.title = "Projected throughput by workers",
                     .x = {"workers (log)", example::ScaleKind::Log},
                     .y = {"samples a second, all workers (log)", example::ScaleKind::Log},
                     .lines = {},
                     .mark = {}};
  const auto styles = stylesOf(panel, comparison.grid);
  for (std::size_t i = 0; i < panel.arms.size(); ++i) {
    const auto& arm = comparison.arms[panel.arms[i]];
    if (arm.arm.mode == Mode::Single) continue;
    example::PlotLine line{arm.name, styles[i], {}};
    for (const auto workers : projectedWorkers(comparison.grid)) {
      const auto at = project(*comparison.link, arm.arm.mode, arm.cost, workers);
      const double rate = samplesPerSecond(arm, at);
      line.points.push_back({static_cast<double>(at.workers), rate, rate, rate});
    }
    plot.lines.push_back(std::move(line));
  }
  return plot;
}

}  // namespace convergence
