#include "muster/core/comparison/detail/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "muster/core/base/byte_text.h"
#include "muster/core/base/number_text.h"
#include "muster/core/base/plural.h"
#include "muster/core/comparison/detail/others_load.h"

namespace muster::detail {
namespace {

constexpr const char* kNothing = "-";

bool hasRecomputed(const ComparisonSummary& s) {
  return std::ranges::any_of(s.arms, [](const ArmSummary& arm) { return arm.recomputed.count > 0; });
}

/// @param seeds  of the grid; the cell shows the number of runs if it is smaller.
std::string scoreCell(const ArmSummary& arm, const ComparisonMetric& metric, std::size_t seeds) {
  if (arm.runs == 0) return "not trained yet";
  if (!arm.trained()) return "diverged";
  const auto text = meanText(arm.score, metric.factor, metric.decimals);
  if (arm.failures > 0) return fmt::format("{} ({} of {} diverged)", text, arm.failures, arm.runs);
  return arm.runs < seeds ? fmt::format("{} (n = {})", text, arm.runs) : text;
}

std::string differenceCell(const ArmSummary& arm, const ComparisonSummary& s) {
  const auto& d = arm.difference;
  if (arm.name == s.baseline) return "baseline";
  if (d.count == 0) return kNothing;
  const auto number = [&](double value) {
    return fmt::format("{:+.{}f}", value * s.metric.factor, s.metric.decimals);
  };
  return !d.hasSpread() ? number(d.mean)
                        : fmt::format("{} [{}, {}]", number(d.mean), number(d.low()), number(d.high()));
}

std::string targetText(const ComparisonSummary& s) {
  return std::isnan(s.target) ? "the target" : s.metric.text(s.target);
}

/// `text` if all seeds reached the target, else how many did.
std::string targetCell(const ArmSummary& arm, const ComparisonSummary& s, const std::string& text) {
  if (arm.runs == 0 || std::isnan(s.target)) return kNothing;
  if (arm.target.reached == arm.runs) return text;
  if (arm.target.reached == 0) return "not reached";
  return fmt::format("{} of {} reached", arm.target.reached, arm.runs);
}

/// timeMarks after a number or a name.
std::string marks(bool oversubscribed, bool loaded) {
  return oversubscribed || loaded ? fmt::format(" {}", timeMarks(oversubscribed, loaded)) : "";
}

std::string secondsCell(const ArmSummary& arm, const SampleMean& seconds) {
  const int decimals = seconds.mean >= 100 ? 0 : seconds.mean >= 10 ? 1 : 2;
  return meanText(seconds, 1, decimals) + marks(arm.oversubscribed, arm.loaded);
}

std::string samplesCell(const ArmSummary& arm) {
  const SampleMean& samples = arm.target.samples;
  const auto mean = groupedNumber(samples.mean);
  return samples.count < 2 ? mean : fmt::format("{} ± {}", mean, groupedNumber(samples.deviation));
}

std::string speedUpCell(const ArmSummary& arm) {
  if (std::isnan(arm.speedUp())) return kNothing;
  const auto spread = arm.logSpeedUp.count < 2
                          ? std::string()
                          : fmt::format(" ×/÷ {:.2f}", std::exp(arm.logSpeedUp.deviation));
  return fmt::format("{:.2f}{}{}", arm.speedUp(), spread, marks(arm.oversubscribed, arm.loaded));
}

std::vector<std::string> summaryRow(const ArmSummary& arm, const ComparisonSummary& s, std::size_t seeds,
                                    Detail detail) {
  const bool trained = arm.trained();
  std::vector<std::string> row{arm.name,
                               scoreCell(arm, s.metric, seeds),
                               differenceCell(arm, s),
                               targetCell(arm, s, samplesCell(arm)),
                               targetCell(arm, s, secondsCell(arm, arm.target.seconds)),
                               trained ? secondsCell(arm, arm.seconds) : kNothing};
  if (detail == Detail::Brief) return row;
  const bool several = trained && arm.workers > 1;
  row.push_back(speedUpCell(arm));
  row.push_back(trained ? groupedNumber(arm.iterations.mean) : kNothing);
  row.push_back(several ? byteText(arm.bytes.mean) : kNothing);
  row.push_back(several && arm.distance.mean > 0 ? fmt::format("{:.2g}", arm.distance.mean) : kNothing);
  if (hasRecomputed(s))
    row.push_back(arm.recomputed.count == 0 ? kNothing
                                            : meanText(arm.recomputed, s.metric.factor, s.metric.decimals));
  return row;
}

/// Numbers of cores or workers as in `2 or 4`.
std::string alternatives(const std::set<std::int64_t>& numbers) {
  return fmt::format("{}", fmt::join(numbers, " or "));
}

/// Explains means, deviations and differences.
std::string seedsNote(const Comparison& c, const ComparisonSummary& s) {
  return fmt::format(
      "Means over {} seeds ± their standard deviation (n - 1), of the model that a training ends with{}. "
      "Difference: mean of the differences to {}, seed by seed, with its 95 % interval (Student's t). Each "
      "interval is of one difference alone: of twenty arms that equal the baseline one differs by chance.",
      c.grid.seeds.size(),
      c.restoresBest
          ? ", which is the best one by the validation data (early stopping with restoreBest), and the last "
            "point of its curve"
          : "",
      s.baseline);
}

/// What one example is worth, where that is more than a tenth of a point.
void addTestSize(const Comparison& c, const ComparisonSummary& s, std::vector<std::string>& notes) {
  const auto examples = c.grid.testExamples;
  if (s.metric.factor != 100 || examples < 1 || examples >= 1000) return;
  notes.push_back(fmt::format("The test data have {}: one of them is worth {:.2f} points.",
                              plural(examples, "example"), 100.0 / static_cast<double>(examples)));
}

std::string targetNote(const Comparison& c, const ComparisonSummary& s) {
  if (std::isnan(s.target)) return "No target: no arm has finished without a run that diverged.";
  return fmt::format(
      "Target: {}{}. An arm reaches it at its first test with that {}.", s.metric.text(s.target),
      c.target ? "" : ", the highest that more than half of the arms reach with every seed", s.metric.name);
}

/// Why runs diverged.
void addFailures(const ComparisonSummary& s, std::vector<std::string>& notes) {
  for (const auto& arm : s.arms)
    if (arm.failures > 0)
      notes.push_back(fmt::format("{}: {} of {} diverged{}: {}.", arm.name, arm.failures,
                                  plural(arm.runs, "run"), arm.failures > 1 ? ", the first" : "",
                                  arm.failure));
}

/// Names the arms that have learnt nothing, if others have.
void addGuesses(const ComparisonSummary& s, std::vector<std::string>& notes) {
  std::vector<std::string> names;
  std::size_t trained = 0;
  for (const auto& arm : s.arms) {
    trained += arm.trained() ? 1 : 0;
    if (arm.guessed()) names.push_back(arm.name);
  }
  if (!names.empty() && names.size() < trained)
    notes.push_back(fmt::format(
        "Not clearly better than one answer for all examples, the commonest class or the mean: {}.",
        fmt::join(names, "; ")));
}

/// Explains the columns of Detail::Full.
void addColumnNotes(const ComparisonSummary& s, std::vector<std::string>& notes) {
  notes.push_back(
      "Speed-up: seconds to the target of the baseline, divided by the arm's, seed by seed: the geometric "
      "mean ×/÷ its geometric standard deviation, a factor. Sent: the payload a worker contributed to all "
      "merges. Distance of the replicas from their mean before a merge, relative "
      "to the norm of the mean, averaged over the run; \"-\" where the replicas are equal or it is not "
      "measured.");
  if (hasRecomputed(s))
    notes.push_back(
        "Statistics recomputed: the running statistics of batch normalisation are those of the training data "
        "under the final parameters; after a short training at a high learning rate they lag behind.");
}

/// Explains the marks of wall times.
void addMarks(const Comparison& c, std::vector<std::string>& notes) {
  std::set<std::int64_t> threads, cores;
  double busy = 0;
  for (const auto& arm : c.runs)
    for (const auto& run : arm) {
      if (run.oversubscribed()) threads.insert(run.threads), cores.insert(run.cores);
      if (run.loaded) busy = std::max(busy, run.othersBusy);
    }
  for (const auto& arm : c.tuned) {
    if (arm.oversubscribed()) threads.insert(arm.threads), cores.insert(arm.cores);
    busy = std::max(busy, arm.othersBusy);
  }
  if (!threads.empty())
    notes.push_back(
        fmt::format("* {} threads shared {} cores: these wall times are not those of workers on "
                    "cores of their own.",
                    alternatives(threads), alternatives(cores)));
  if (busy > 0)
    notes.push_back(
        fmt::format("! Measured under load: other programs kept up to {:.1f} cores busy, so these "
                    "wall times are too long.",
                    busy));
}

}  // namespace

std::string timeMarks(bool oversubscribed, bool loaded) {
  return std::string(oversubscribed ? "*" : "") + (loaded ? "!" : "");
}

bool hasUnknownLoad(const Comparison& c) {
  return std::ranges::any_of(c.runs, [](const std::vector<RunRecord>& arm) {
    return std::ranges::any_of(arm, [](const RunRecord& run) {
      return !run.loaded && !run.points.empty() && run.end().seconds < OthersLoad::kShortest;
    });
  });
}

Cells summaryCells(const Comparison& c, const ComparisonSummary& s, Detail detail) {
  const auto target = targetText(s);
  Cells rows{{"arm", fmt::format("{}{}", s.metric.name, s.metric.unit.empty() ? "" : ", %"),
              fmt::format("difference{}", s.metric.unit.empty() ? "" : ", points"), "samples to " + target,
              "seconds to " + target, "seconds in all"}};
  if (detail == Detail::Full) {
    rows.front().insert(rows.front().end(),
                        {"speed-up", "steps per worker", "sent by a worker", "distance of replicas"});
    if (hasRecomputed(s)) rows.front().push_back("statistics recomputed");
  }
  for (const auto& arm : s.arms) rows.push_back(summaryRow(arm, s, c.grid.seeds.size(), detail));
  return rows;
}

std::vector<std::string> summaryNotes(const Comparison& c, const ComparisonSummary& s, Detail detail) {
  std::vector<std::string> notes;
  if (c.grid.seeds.size() > 1) notes.push_back(seedsNote(c, s));
  addTestSize(c, s, notes);
  notes.push_back(targetNote(c, s));
  addFailures(s, notes);
  addGuesses(s, notes);
  std::set<std::int64_t> cores;
  for (const auto& arm : c.runs)
    for (const auto& run : arm) cores.insert(run.cores);
  notes.push_back(fmt::format("Seconds are wall time of training on {} core{}, without the tests.{}",
                              alternatives(cores), cores == std::set<std::int64_t>{1} ? "" : "s",
                              hasUnknownLoad(c) ? fmt::format(" Load of other programs is not known, and not "
                                                              "marked, for less than {} s.",
                                                              OthersLoad::kShortest)
                                                : ""));
  if (detail == Detail::Full) addColumnNotes(s, notes);
  addMarks(c, notes);
  return notes;
}

Cells tuningCells(const Comparison& c) {
  if (c.tuned.empty()) return {};
  Cells rows{{"arm", "chosen", "validation loss of each choice", "trainings", "seconds"}};
  for (const auto& tuned : c.tuned) {
    if (tuned.choices.empty()) {
      rows.push_back({tuned.arm, "not tuned", kNothing, "0", "0"});
      continue;
    }
    std::vector<std::string> losses;
    for (std::size_t i = 0; i < tuned.choices.size(); ++i)
      losses.push_back(std::isfinite(tuned.losses[i])
                           ? fmt::format("{}: {:.4g}", tuned.choices[i].text, tuned.losses[i])
                           : fmt::format("{}: diverged", tuned.choices[i].text));
    rows.push_back({tuned.arm,
                    tuned.failed() ? "none" : tuned.choices[tuned.best].text + (tuned.atEnd() ? " ^" : ""),
                    fmt::format("{}", fmt::join(losses, ", ")), fmt::format("{}", tuned.choices.size()),
                    secondsDigits(tuned.seconds) + marks(tuned.oversubscribed(), tuned.loaded)});
  }
  return rows;
}

Cells linkCells(const Comparison& c, const ComparisonSummary& s, Detail detail) {
  if (!c.link) return {};
  std::vector<std::int64_t> own;
  for (const auto& arm : s.arms) own.push_back(arm.workers);
  const auto workers = projectedWorkers(own);
  Cells rows{{detail == Detail::Full ? "seconds (of them computing) with workers" : "seconds with workers"}};
  for (const auto count : workers) rows.front().push_back(fmt::format("{}", count));
  rows.front().push_back(fmt::format("own, to {}", targetText(s)));
  for (const auto& arm : s.arms) {
    if (arm.workers < 2 || !arm.trained()) continue;
    const auto cell = [&](const WorkerCost& cost, std::int64_t count) {
      const auto at = projectOnLink(*c.link, arm.summed, cost, count);
      const auto share =
          detail == Detail::Full ? fmt::format(" ({:.0f} %)", at.computingShare * 100) : std::string();
      return secondsDigits(at.seconds) + share;
    };
    auto& row = rows.emplace_back(std::vector{arm.name + marks(arm.oversubscribed, arm.loaded)});
    for (const auto count : workers) row.push_back(cell(arm.cost, count));
    row.push_back(targetCell(arm, s, cell(arm.target.cost, arm.workers)));
  }
  return rows;
}

}  // namespace muster::detail
