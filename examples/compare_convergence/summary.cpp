#include "examples/compare_convergence/summary.h"

#include <algorithm>

#include "examples/compare_convergence/names.h"

namespace convergence {
namespace {

using Runs = std::vector<const RunRecord*>;

/// The spread of `value` over the items.
template <typename Items, typename Value>
example::Spread spreadOver(const Items& items, Value value) {
  std::vector<double> values;
  for (const auto& item : items) values.push_back(static_cast<double>(value(item)));
  return example::spreadOf(values);
}

/// The first test of a run that reached the accuracy; nullptr if none did.
const Point* firstAt(const RunRecord& run, double accuracy) {
  const auto found =
      std::ranges::find_if(run.points, [&](const Point& point) { return point.testAccuracy >= accuracy; });
  return run.failed() || found == run.points.end() ? nullptr : &*found;
}

Target targetOf(const Runs& runs, double accuracy) {
  std::vector<const Point*> first;
  std::vector<double> computing;
  for (const auto* run : runs)
    if (const auto* point = firstAt(*run, accuracy)) {
      first.push_back(point);
      const auto done = static_cast<double>(point->samples) / static_cast<double>(run->points.back().samples);
      computing.push_back(run->computeSeconds * done);
    }
  const auto of = [&](auto member) {
    return spreadOver(first, [&](const Point* point) { return point->*member; });
  };
  return {.reached = first.size(),
          .seconds = of(&Point::seconds),
          .samples = of(&Point::samples),
          .cost = {.computeSeconds = example::spreadOf(computing).mean,
                   .exchanges = of(&Point::rounds).mean,
                   .bytes = of(&Point::bytes).mean,
                   .resynchronisations = of(&Point::resynchronisations).mean,
                   .resynchronisationBytes = of(&Point::resynchronisationBytes).mean}};
}

double meanDistance(const RunRecord& run) {
  return spreadOver(run.points, [](const Point& point) { return point.distance; }).mean;
}

ArmSummary summariseArm(const Arm& arm, const std::vector<RunRecord>& all, double targetAccuracy) {
  ArmSummary summary;
  summary.arm = arm;
  Runs runs;
  for (const auto& run : all) {
    if (run.arm != arm) continue;
    ++summary.runs;
    summary.oversubscribed |= run.oversubscribed();
    // A failed run has no final result.
    run.failed() || run.points.empty() ? void(++summary.failures) : runs.push_back(&run);
  }
  summary.target = targetOf(runs, targetAccuracy);
  if (runs.empty()) return summary;
  const auto atEnd = [&](auto member) {
    return spreadOver(runs, [&](const RunRecord* run) { return run->points.back().*member; });
  };
  summary.samples = atEnd(&Point::samples).mean;
  summary.finalAccuracy = atEnd(&Point::testAccuracy);
  const auto [worst, best] =
      std::ranges::minmax(runs, {}, [](const RunRecord* run) { return run->points.back().testAccuracy; });
  summary.worstAccuracy = worst->points.back().testAccuracy;
  summary.bestAccuracy = best->points.back().testAccuracy;
  summary.seconds = atEnd(&Point::seconds);
  summary.bytes = atEnd(&Point::bytes);
  summary.distance = spreadOver(runs, [](const RunRecord* run) { return meanDistance(*run); });
  summary.cost = {
      .computeSeconds = spreadOver(runs, [](const RunRecord* run) { return run->computeSeconds; }).mean,
      .exchanges = atEnd(&Point::rounds).mean,
      .bytes = summary.bytes.mean,
      .resynchronisations = atEnd(&Point::resynchronisations).mean,
      .resynchronisationBytes = atEnd(&Point::resynchronisationBytes).mean};
  return summary;
}

bool isReferenceOf(const Arm& reference, const Arm& arm) {
  return arm.mode != Mode::Single && reference.mode == Mode::Synchronous &&
         reference.workers == arm.workers && reference.batch == arm.batch &&
         reference.updater == arm.updater && reference.learningRate == arm.learningRate;
}

/// Time to the target of `reference` divided by that of `arm`, for each seed that trained both.
example::Spread speedUpOver(const Arm& reference, const Arm& arm, const std::vector<RunRecord>& runs,
                            double targetAccuracy) {
  std::vector<double> ratios;
  for (const auto& run : runs)
    for (const auto& other : runs) {
      if (run.arm != arm || other.arm != reference || run.seed != other.seed) continue;
      const auto* own = firstAt(run, targetAccuracy);
      const auto* its = firstAt(other, targetAccuracy);
      if (own == nullptr || its == nullptr || own->seconds <= 0) return {};
      ratios.push_back(its->seconds / own->seconds);
    }
  return example::spreadOf(ratios);
}

}  // namespace

double samplesPerSecond(const ArmSummary& arm, const Projection& projection) {
  if (projection.seconds <= 0) return 0;
  const double ofOneWorker = arm.samples / static_cast<double>(arm.arm.workers);
  return ofOneWorker * static_cast<double>(projection.workers) / projection.seconds;
}

std::vector<ArmSummary> summarise(const Grid& grid, const std::vector<RunRecord>& runs,
                                  double targetAccuracy) {
  std::vector<ArmSummary> all;
  for (const auto& arm : grid.arms) {
    all.push_back(summariseArm(arm, runs, targetAccuracy));
    all.back().name = armName(arm, grid);
  }
  for (auto& summary : all) {
    const auto reference = std::ranges::find_if(
        all, [&](const ArmSummary& other) { return isReferenceOf(other.arm, summary.arm); });
    if (reference != all.end())
      summary.speedUp = speedUpOver(reference->arm, summary.arm, runs, targetAccuracy);
  }
  return all;
}

}  // namespace convergence
