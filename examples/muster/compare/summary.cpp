#include "examples/muster/compare/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "muster/core/base/plural.h"

namespace comparing {
namespace {

using Runs = std::vector<const RunRecord*>;

/// The spread of `value` over the items.
template <typename Items, typename Value>
Spread spreadOver(const Items& items, Value value) {
  std::vector<double> values;
  for (const auto& item : items) values.push_back(static_cast<double>(value(item)));
  return spreadOf(values);
}

/// The first test of a run that reached the score; nullptr if none did.
const Point* firstAt(const RunRecord& run, double score) {
  const auto found =
      std::ranges::find_if(run.points, [&](const Point& point) { return point.score >= score; });
  return run.failed() || found == run.points.end() ? nullptr : &*found;
}

Target targetOf(const Runs& runs, double score) {
  std::vector<const Point*> first;
  std::vector<double> computing;
  for (const auto* run : runs)
    if (const auto* point = firstAt(*run, score)) {
      first.push_back(point);
      const auto done = static_cast<double>(point->samples) / static_cast<double>(run->end().samples);
      computing.push_back(run->computeSeconds * done);
    }
  const auto of = [&](auto member) {
    return spreadOver(first, [&](const Point* point) { return point->*member; });
  };
  return {.reached = first.size(),
          .seconds = of(&Point::seconds),
          .samples = of(&Point::samples),
          .cost = {.computeSeconds = spreadOf(computing).mean,
                   .exchanges = of(&Point::rounds).mean,
                   .bytes = of(&Point::bytes).mean,
                   .resynchronisations = of(&Point::resynchronisations).mean,
                   .resynchronisationBytes = of(&Point::resynchronisationBytes).mean}};
}

ArmSummary summariseArm(const std::string& name, const Runs& all, double target) {
  ArmSummary summary;
  summary.name = name;
  summary.runs = all.size();
  Runs runs;
  std::vector<double> recomputed;
  for (const auto* run : all) {
    summary.workers = run->workers;
    summary.summed = run->summed;
    summary.oversubscribed |= run->oversubscribed();
    summary.loaded |= run->loaded;
    if (run->failed()) {
      ++summary.failures;
      continue;
    }
    runs.push_back(run);
    recomputed.insert(recomputed.end(), run->recomputed.begin(), run->recomputed.end());
  }
  if (runs.empty()) return summary;
  const auto atEnd = [&](auto member) {
    return spreadOver(runs, [&](const RunRecord* run) { return run->end().*member; });
  };
  summary.score = atEnd(&Point::score);
  summary.recomputed = spreadOf(recomputed);
  summary.target = targetOf(runs, target);
  summary.seconds = atEnd(&Point::seconds);
  summary.bytes = atEnd(&Point::bytes);
  summary.iterations = atEnd(&Point::iterations);
  summary.samples = atEnd(&Point::samples).mean;
  summary.distance = spreadOver(runs, [](const RunRecord* run) {
    return spreadOver(run->points, [](const Point& point) { return point.distance; }).mean;
  });
  summary.cost = {
      .computeSeconds = spreadOver(runs, [](const RunRecord* run) { return run->computeSeconds; }).mean,
      .exchanges = atEnd(&Point::rounds).mean,
      .bytes = summary.bytes.mean,
      .resynchronisations = atEnd(&Point::resynchronisations).mean,
      .resynchronisationBytes = atEnd(&Point::resynchronisationBytes).mean};
  return summary;
}

/// `value` of each pair of runs, the arm's and the baseline's, with one seed, if both did not fail.
template <typename Value>
Spread paired(const Runs& arm, const Runs& baseline, Value value) {
  std::vector<double> values;
  for (const auto* run : arm)
    for (const auto* other : baseline)
      if (run->seed == other->seed && !run->failed() && !other->failed())
        values.push_back(value(*run, *other));
  return spreadOf(values);
}

void compareWith(const Runs& baseline, const Runs& runs, double target, ArmSummary& summary) {
  summary.difference = paired(runs, baseline, [](const RunRecord& run, const RunRecord& other) {
    return run.end().score - other.end().score;
  });
  summary.speedUp = paired(runs, baseline, [&](const RunRecord& run, const RunRecord& other) {
    const auto *own = firstAt(run, target), *its = firstAt(other, target);
    return own && its && own->seconds > 0 ? its->seconds / own->seconds
                                          : std::numeric_limits<double>::quiet_NaN();
  });
}

/// For example "diloco by 1.20 points (95 % interval 0.43 to 1.97, 5 seeds)"; `sign` -1 of one that is worse.
std::string differenceSentence(const ArmSummary& arm, const Metric& metric, double sign) {
  const auto& d = arm.difference;
  const auto number = [&](double value) {
    return fmt::format("{:.{}f}", sign * value * metric.factor, metric.decimals);
  };
  const double low = sign > 0 ? d.low() : d.high(), high = sign > 0 ? d.high() : d.low();
  return fmt::format("{} by {}{} (95 % interval {} to {}, {})", arm.name, number(d.mean), metric.points,
                     number(low), number(high), muster::plural(d.count, "seed"));
}

}  // namespace

Metric Metric::named(const std::string& name) {
  if (name == "r2") return {.name = "R2", .factor = 1, .decimals = 4, .unit = "", .points = ""};
  return {};
}

std::string Metric::text(double score) const {
  return fmt::format("{:.6g}{}", score * factor, unit);
}

std::size_t Comparison::finished() const {
  std::size_t all = 0;
  for (const auto& arm : runs) all += arm.size();
  return all;
}

double samplesPerSecond(const ArmSummary& arm, const Projection& projection) {
  if (projection.seconds <= 0) return 0;
  const double ofOneWorker = arm.samples / static_cast<double>(arm.workers);
  return ofOneWorker * static_cast<double>(projection.workers) / projection.seconds;
}

double chooseTarget(const std::vector<std::vector<const RunRecord*>>& runs) {
  std::vector<double> reached;  // [arm] with every seed
  for (const auto& arm : runs) {
    double lowest = std::numeric_limits<double>::infinity();
    for (const auto* run : arm)
      lowest = run->failed() ? -std::numeric_limits<double>::infinity()
                             : std::min(lowest, std::ranges::max(run->points, {}, &Point::score).score);
    if (std::isfinite(lowest)) reached.push_back(lowest);
  }
  if (reached.empty()) return 0;
  std::ranges::sort(reached);
  return std::floor(reached[(reached.size() - 1) / 2] * 1000) / 1000;
}

void summarise(Comparison& c) {
  c.target = c.wantedTarget.value_or(chooseTarget(c.runs));
  c.arms.clear();
  const auto baseline =
      static_cast<std::size_t>(std::ranges::find(c.grid.arms, c.baseline, &Arm::name) - c.grid.arms.begin());
  for (std::size_t i = 0; i < c.grid.arms.size(); ++i) {
    auto& summary = c.arms.emplace_back(summariseArm(c.grid.arms[i].name, c.runs[i], c.target));
    if (i != baseline) compareWith(c.runs[baseline], c.runs[i], c.target, summary);
  }
  std::ranges::stable_sort(c.arms, std::ranges::greater{}, [](const ArmSummary& arm) {
    return arm.trained() ? arm.score.mean : -std::numeric_limits<double>::infinity();
  });
}

std::string conclusion(const Comparison& c) {
  std::vector<const ArmSummary*> better, worse;
  std::size_t same = 0, unknown = 0;  // unknown: fewer than two pairs of finished runs, so no interval
  for (const auto& arm : c.arms) {
    if (arm.name == c.baseline) continue;
    if (arm.difference.count < 2)
      ++unknown;
    else if (!arm.difference.differsFromZero())
      ++same;
    else
      (arm.difference.mean > 0 ? better : worse).push_back(&arm);
  }
  const auto rest = [](std::size_t count, std::string_view what) {
    return count == 0 ? std::string() : fmt::format("; {} {} {}", count, count == 1 ? "is" : "are", what);
  };
  if (c.grid.seeds.size() < 2)
    return "One seed: whether arms differ by more than chance is not known; --seeds 1,2,3,4,5 adds four.";
  const auto open = [](std::size_t arms) {
    return fmt::format("of {} it is not known whether {}", muster::plural(arms, "arm"),
                       arms == 1 ? "it differs" : "they differ");
  };
  if (better.empty() && worse.empty() && same == 0)
    return fmt::format("Compared with {}, {}: fewer than two seeds have a finished run of both.", c.baseline,
                       open(unknown));
  if (better.empty() && worse.empty())
    return fmt::format(
        "No arm differs from {} by more than chance would explain (95 % intervals of Student's t){}.",
        c.baseline, unknown == 0 ? std::string() : "; " + open(unknown));
  const auto others = same + unknown == 0 ? std::string() : "; " + open(same + unknown);
  if (!better.empty())
    return fmt::format("Better than {}: {}{}{}{}.", c.baseline,
                       differenceSentence(*better.front(), c.metric, 1),
                       rest(better.size() - 1, "better by less"), rest(worse.size(), "worse"), others);
  return fmt::format("No arm is better than {}. Worse: {}{}{}.", c.baseline,
                     differenceSentence(*worse.back(), c.metric, -1), rest(worse.size() - 1, "worse by less"),
                     others);
}

}  // namespace comparing
