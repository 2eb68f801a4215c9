#include "muster/core/comparison/arm_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace muster {
namespace {

using Runs = std::span<const RunRecord>;

/// Mean and spread of `value` over the items.
template <typename Items, typename Value>
SampleMean meanOver(const Items& items, Value value) {
  std::vector<double> values;
  for (const auto& item : items) values.push_back(static_cast<double>(value(item)));
  return sampleMeanOf(values);
}

/// The first test of a run that reached the score; nullptr if none did.
const RunPoint* firstAt(const RunRecord& run, double score) {
  const auto found =
      std::ranges::find_if(run.points, [&](const RunPoint& point) { return point.score >= score; });
  return run.failed() || found == run.points.end() ? nullptr : &*found;
}

TargetReached targetOf(Runs runs, double score) {
  std::vector<const RunPoint*> first;
  std::vector<double> computing;
  for (const auto& run : runs)
    if (const auto* point = firstAt(run, score)) {
      first.push_back(point);
      const auto done = static_cast<double>(point->samples) / static_cast<double>(run.end().samples);
      computing.push_back(run.computeSeconds * done);
    }
  const auto of = [&](auto member) {
    return meanOver(first, [&](const RunPoint* point) { return point->*member; });
  };
  return {.reached = first.size(),
          .seconds = of(&RunPoint::seconds),
          .samples = of(&RunPoint::samples),
          .cost = {.computeSeconds = sampleMeanOf(computing).mean,
                   .rounds = of(&RunPoint::rounds).mean,
                   .bytes = of(&RunPoint::bytes).mean,
                   .resynchronisations = of(&RunPoint::resynchronisations).mean,
                   .resynchronisationBytes = of(&RunPoint::resynchronisationBytes).mean}};
}

/// Fills the means over runs that did not fail.
void addMeans(Runs runs, double target, ArmSummary& summary) {
  const auto atEnd = [&](auto member) {
    return meanOver(runs, [&](const RunRecord& run) { return run.end().*member; });
  };
  std::vector<double> recomputed;
  for (const auto& run : runs)
    recomputed.insert(recomputed.end(), run.recomputed.begin(), run.recomputed.end());
  summary.score = atEnd(&RunPoint::score);
  summary.recomputed = sampleMeanOf(recomputed);
  summary.target = targetOf(runs, target);
  summary.seconds = atEnd(&RunPoint::seconds);
  summary.bytes = atEnd(&RunPoint::bytes);
  summary.iterations = atEnd(&RunPoint::iterations);
  summary.samples = atEnd(&RunPoint::samples).mean;
  summary.distance = meanOver(runs, [](const RunRecord& run) {
    return meanOver(run.points, [](const RunPoint& point) { return point.distance; }).mean;
  });
  summary.cost = {
      .computeSeconds = meanOver(runs, [](const RunRecord& run) { return run.computeSeconds; }).mean,
      .rounds = atEnd(&RunPoint::rounds).mean,
      .bytes = summary.bytes.mean,
      .resynchronisations = atEnd(&RunPoint::resynchronisations).mean,
      .resynchronisationBytes = atEnd(&RunPoint::resynchronisationBytes).mean};
}

/// `value` of each pair of runs, the arm's and the baseline's, with one seed, if both did not fail.
template <typename Value>
SampleMean paired(Runs arm, Runs baseline, Value value) {
  std::vector<double> values;
  for (const auto& run : arm)
    for (const auto& other : baseline)
      if (run.seed == other.seed && !run.failed() && !other.failed()) values.push_back(value(run, other));
  return sampleMeanOf(values);
}

}  // namespace

ComparisonMetric ComparisonMetric::named(const std::string& name) {
  if (name == "r2") return {.name = "R2", .factor = 1, .decimals = 4, .unit = "", .points = ""};
  return {};
}

std::string ComparisonMetric::text(double score) const {
  return fmt::format("{:.6g}{}", score * factor, unit);
}

double ArmSummary::speedUp() const {
  return logSpeedUp.count > 0 ? std::exp(logSpeedUp.mean) : std::numeric_limits<double>::quiet_NaN();
}

double samplesPerSecond(const ArmSummary& arm, const LinkProjection& projection) {
  if (projection.seconds <= 0) return 0;
  const double ofOneWorker = arm.samples / static_cast<double>(arm.workers);
  return ofOneWorker * static_cast<double>(projection.workers) / projection.seconds;
}

double chooseTarget(std::span<const std::vector<RunRecord>> runs) {
  std::vector<double> reached;  // [arm] with every seed
  for (const auto& arm : runs) {
    double lowest = std::numeric_limits<double>::infinity();
    for (const auto& run : arm)
      lowest = run.failed() ? -std::numeric_limits<double>::infinity()
                            : std::min(lowest, std::ranges::max(run.points, {}, &RunPoint::score).score);
    if (std::isfinite(lowest)) reached.push_back(lowest);
  }
  if (reached.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(reached);
  return std::floor(reached[(reached.size() - 1) / 2] * 1000) / 1000;
}

ArmSummary summariseArm(std::string name, std::span<const RunRecord> all, double target) {
  ArmSummary summary;
  summary.name = std::move(name);
  summary.runs = all.size();
  std::vector<RunRecord> finished;
  for (const auto& run : all) {
    summary.workers = run.workers;
    summary.summed = summary.summed && run.summed;
    summary.oversubscribed |= run.oversubscribed();
    summary.loaded |= run.loaded;
    if (!run.failed()) {
      finished.push_back(run);
      summary.guesses.judged += run.judged ? 1 : 0;
      if (!run.guess.empty() && summary.guesses.count++ == 0) summary.guesses.first = run.guess;
    } else if (summary.failures++ == 0) {
      summary.failure = run.failure.empty() ? "it was not tested" : run.failure;
    }
  }
  if (!finished.empty()) addMeans(finished, target, summary);
  return summary;
}

void compareWith(std::span<const RunRecord> baseline, std::span<const RunRecord> runs, double target,
                 ArmSummary& summary) {
  summary.difference = paired(runs, baseline, [](const RunRecord& run, const RunRecord& other) {
    return run.end().score - other.end().score;
  });
  summary.logSpeedUp = paired(runs, baseline, [&](const RunRecord& run, const RunRecord& other) {
    const auto *own = firstAt(run, target), *others = firstAt(other, target);
    const bool measured = own && others && own->seconds > 0 && others->seconds > 0;
    return measured ? std::log(others->seconds / own->seconds) : std::numeric_limits<double>::quiet_NaN();
  });
}

}  // namespace muster
