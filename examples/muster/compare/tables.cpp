#include "examples/muster/compare/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "muster/core/base/byte_text.h"
#include "muster/core/base/plural.h"

namespace comparing {
namespace {

constexpr const char* kNothing = "-";

bool any(const Comparison& c, auto predicate) {
  return std::ranges::any_of(c.arms, predicate);
}

bool hasRecomputed(const Comparison& c) {
  return any(c, [](const ArmSummary& arm) { return arm.recomputed.count > 0; });
}

/// @param seeds  of the grid; the cell shows the number of runs if it is smaller.
std::string scoreCell(const ArmSummary& arm, const Metric& metric, std::size_t seeds) {
  if (arm.runs == 0) return "not trained yet";
  if (!arm.trained()) return "diverged";
  const auto text = spreadText(arm.score, metric.factor, metric.decimals);
  if (arm.failures > 0) return fmt::format("{} ({} of {} diverged)", text, arm.failures, arm.runs);
  return arm.runs < seeds ? fmt::format("{} (n = {})", text, arm.runs) : text;
}

std::string differenceCell(const ArmSummary& arm, const Comparison& c) {
  const auto& d = arm.difference;
  if (arm.name == c.baseline) return "baseline";
  if (d.count == 0) return kNothing;
  const auto number = [&](double value) {
    return fmt::format("{:+.{}f}", value * c.metric.factor, c.metric.decimals);
  };
  return d.count < 2 ? number(d.mean)
                     : fmt::format("{} [{}, {}]", number(d.mean), number(d.low()), number(d.high()));
}

/// `text` if all seeds reached the target, else how many did.
std::string targetCell(const ArmSummary& arm, const std::string& text) {
  if (arm.runs == 0) return kNothing;
  if (arm.target.reached == arm.runs) return text;
  if (arm.target.reached == 0) return "not reached";
  return fmt::format("{} of {} reached", arm.target.reached, arm.runs);
}

/// Marks of wall times.
std::string marks(const ArmSummary& arm) {
  return fmt::format("{}{}{}", arm.oversubscribed || arm.loaded ? " " : "", arm.oversubscribed ? "*" : "",
                     arm.loaded ? "!" : "");
}

std::string secondsCell(const ArmSummary& arm, const Spread& seconds) {
  const int decimals = seconds.mean >= 100 ? 0 : seconds.mean >= 10 ? 1 : 2;
  return spreadText(seconds, 1, decimals) + marks(arm);
}

std::string samplesCell(const ArmSummary& arm) {
  const Spread& samples = arm.target.samples;
  const auto mean = groupedNumber(samples.mean);
  return samples.count < 2 ? mean : fmt::format("{} ± {}", mean, groupedNumber(samples.deviation));
}

std::vector<std::string> summaryRow(const ArmSummary& arm, const Comparison& c, Detail detail) {
  const bool trained = arm.trained();
  std::vector<std::string> row{arm.name,
                               scoreCell(arm, c.metric, c.grid.seeds.size()),
                               differenceCell(arm, c),
                               targetCell(arm, samplesCell(arm)),
                               targetCell(arm, secondsCell(arm, arm.target.seconds)),
                               trained ? secondsCell(arm, arm.seconds) : kNothing};
  if (detail == Detail::Brief) return row;
  const bool several = trained && arm.workers > 1;
  const bool ratio = arm.speedUp.count > 0 && !std::isnan(arm.speedUp.mean);
  row.push_back(ratio ? spreadText(arm.speedUp, 1, 2) + marks(arm) : kNothing);
  row.push_back(trained ? groupedNumber(arm.iterations.mean) : kNothing);
  row.push_back(several ? muster::byteText(arm.bytes.mean) : kNothing);
  row.push_back(several && arm.distance.mean > 0 ? fmt::format("{:.2g}", arm.distance.mean) : kNothing);
  if (hasRecomputed(c))
    row.push_back(arm.recomputed.count == 0 ? kNothing
                                            : spreadText(arm.recomputed, c.metric.factor, c.metric.decimals));
  return row;
}

/// Numbers of cores or workers as in `2 or 4`.
std::string alternatives(const std::set<std::int64_t>& numbers) {
  return fmt::format("{}", fmt::join(numbers, " or "));
}

/// Explains the marks of wall times.
void addMarks(const Comparison& c, std::vector<std::string>& notes) {
  std::set<std::int64_t> threads, cores;
  double busy = 0;
  for (const auto& arm : c.runs)
    for (const auto* run : arm) {
      if (run->oversubscribed()) threads.insert(run->threads), cores.insert(run->cores);
      if (run->loaded) busy = std::max(busy, run->othersBusy);
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

Cells summaryCells(const Comparison& c, Detail detail) {
  const auto target = c.metric.text(c.target);
  Cells rows{{"arm", fmt::format("{}{}", c.metric.name, c.metric.unit.empty() ? "" : ", %"),
              fmt::format("difference{}", c.metric.unit.empty() ? "" : ", points"), "samples to " + target,
              "seconds to " + target, "seconds in all"}};
  if (detail == Detail::Full) {
    rows.front().insert(rows.front().end(),
                        {"speed-up", "steps a worker", "sent by a worker", "distance of replicas"});
    if (hasRecomputed(c)) rows.front().push_back("statistics recomputed");
  }
  for (const auto& arm : c.arms) rows.push_back(summaryRow(arm, c, detail));
  return rows;
}

/// Whether early stopping gives a training its best model back.
bool restores(const Grid& grid) {
  const auto found = grid.settings.find("listeners.earlyStopping.restoreBest");
  return found != grid.settings.end() && found->second == "true";
}

std::vector<std::string> summaryNotes(const Comparison& c, Detail detail) {
  std::vector<std::string> notes;
  const auto seeds = c.grid.seeds.size();
  if (seeds > 1)
    notes.push_back(fmt::format(
        "Means over {} seeds ± their standard deviation (n - 1), of the model that a training ends with{}. "
        "Difference: "
        "mean of the differences to {}, seed by seed, with its 95 % interval (Student's t). Each interval is "
        "of one difference alone: of twenty arms that equal the baseline one differs by chance.",
        seeds,
        restores(c.grid)
            ? ", which is the best one by the validation data (listeners.earlyStopping.restoreBest)"
            : "",
        c.baseline));
  notes.push_back(
      fmt::format("Target: {}{}. An arm reaches it at its first test with that {}.", c.metric.text(c.target),
                  c.wantedTarget ? "" : ", the highest that more than half of the arms reach with every seed",
                  c.metric.name));
  std::set<std::int64_t> cores;
  for (const auto& arm : c.runs)
    for (const auto* run : arm) cores.insert(run->cores);
  notes.push_back(fmt::format("Seconds are wall time of training on {} core{}, without the tests.",
                              alternatives(cores), cores == std::set<std::int64_t>{1} ? "" : "s"));
  if (detail == Detail::Full) {
    notes.push_back(
        "Speed-up: seconds to the target of the baseline, divided by the arm's, seed by seed. Sent: the "
        "payload a "
        "worker contributed to all merges. Distance of the replicas from their mean before a merge, relative "
        "to "
        "the norm of the mean, averaged over the run; \"-\" where the replicas are equal or it is not "
        "measured.");
    if (hasRecomputed(c))
      notes.push_back(
          "Statistics recomputed: the running statistics of batch normalisation are those of the training "
          "data "
          "under the final parameters; after a short training at a high learning rate they lag behind.");
  }
  addMarks(c, notes);
  return notes;
}

Cells tuningCells(const Comparison& c) {
  if (c.tuned.empty()) return {};
  Cells rows{{"arm", "chosen", "validation loss of each choice", "trainings", "seconds"}};
  for (const auto& tuned : c.tuned) {
    std::vector<std::string> losses;
    for (std::size_t i = 0; i < tuned.choices.size(); ++i)
      losses.push_back(std::isfinite(tuned.losses[i])
                           ? fmt::format("{}: {:.4g}", tuned.choices[i].text, tuned.losses[i])
                           : fmt::format("{}: diverged", tuned.choices[i].text));
    rows.push_back({tuned.arm,
                    tuned.failed() ? "none" : tuned.choices[tuned.best].text + (tuned.atEnd() ? " ^" : ""),
                    fmt::format("{}", fmt::join(losses, ", ")), fmt::format("{}", tuned.choices.size()),
                    secondsDigits(tuned.seconds)});
  }
  return rows;
}

std::string tuningNote(const Comparison& c) {
  if (c.grid.tune.empty())
    return "Nothing was tuned: each arm ran with the options of the run file and its own. An arm that needs "
           "another learning rate is at a disadvantage; --tune learningRate=0.01,0.03,0.1 chooses one for "
           "each.";
  const bool atEnd = std::ranges::any_of(c.tuned, &Tuned::atEnd);
  return fmt::format(
      "Tuned alike: each arm trained once with each choice, with a seed of its own ({}), and the smallest "
      "loss on the "
      "validation data chose. The test data had no part in it.{}",
      kTuningSeed,
      atEnd ? " ^ The best choice is the first or the last: others beyond it may be better." : "");
}

Cells linkCells(const Comparison& c, Detail detail) {
  if (!c.link) return {};
  std::vector<std::int64_t> own;
  for (const auto& arm : c.arms) own.push_back(arm.workers);
  const auto workers = projectedWorkers(own);
  Cells rows{{detail == Detail::Full ? "seconds (of them computing) with workers" : "seconds with workers"}};
  for (const auto count : workers) rows.front().push_back(fmt::format("{}", count));
  rows.front().push_back(fmt::format("own, to {}", c.metric.text(c.target)));
  for (const auto& arm : c.arms) {
    if (arm.workers < 2 || !arm.trained()) continue;
    const auto cell = [&](const WorkerCost& cost, std::int64_t count) {
      const auto at = project(*c.link, arm.summed, cost, count);
      const auto share =
          detail == Detail::Full ? fmt::format(" ({:.0f} %)", at.computingShare * 100) : std::string();
      return secondsDigits(at.seconds) + share;
    };
    auto& row = rows.emplace_back(std::vector{arm.name + marks(arm)});
    for (const auto count : workers) row.push_back(cell(arm.cost, count));
    row.push_back(targetCell(arm, cell(arm.target.cost, arm.workers)));
  }
  return rows;
}

}  // namespace comparing
