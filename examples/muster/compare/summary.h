#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "examples/muster/compare/link_model.h"
#include "examples/muster/compare/number_text.h"
#include "examples/muster/compare/results_file.h"
#include "examples/muster/compare/tuning.h"

namespace comparing {

/// The score that arms are compared by.
struct Metric {
  std::string name = "accuracy";  ///< for display
  double factor = 100;            ///< from the recorded score to the one shown
  int decimals = 2;
  std::string unit = " %";         ///< of a score
  std::string points = " points";  ///< of a difference

  static Metric named(const std::string& name);
  std::string text(double score) const;
};

/// The first test at which an arm reached the target.
struct Target {
  std::size_t reached = 0;  ///< seeds that reached the target
  Spread seconds, samples;  ///< over those seeds
  WorkerCost cost;          ///< up to that test, means over those seeds
};

/// An arm's results over its finished seeds. A failed seed counts only in `runs` and `failures`.
struct ArmSummary {
  std::string name;
  std::size_t runs = 0;      ///< finished
  std::size_t failures = 0;  ///< how many of the runs
  Spread score;              ///< at the end
  Spread difference;         ///< of the score to the baseline's, seed by seed; count 0: the baseline
  Spread recomputed;         ///< the score with recomputed statistics; count 0: the network has none
  Target target;
  Spread speedUp;  ///< seconds to the target of the baseline divided by this arm's, seed by seed
  Spread seconds, bytes, distance, iterations;  ///< of the whole training; bytes of one worker
  WorkerCost cost;                              ///< means over the seeds
  std::int64_t workers = 1;
  bool summed = true, oversubscribed = false, loaded = false;
  double samples = 0;  ///< of a whole run by all workers

  bool trained() const { return score.count > 0; }
};

/// The content of the tables, the files and the report.
struct Comparison {
  Grid grid;
  Metric metric = {};
  std::vector<std::vector<const RunRecord*>> runs;  ///< [arm of the grid][finished seed]
  std::vector<Tuned> tuned = {};                    ///< arms that were tuned
  std::string baseline = {};                        ///< an arm's name
  std::optional<double> wantedTarget = {};          ///< a recorded score; empty: chosen by chooseTarget
  std::optional<Link> link = {};
  std::string title = {};                    ///< names the run file
  std::vector<std::string> paragraphs = {};  ///< data, network and how it is tested, a sentence each
  std::string made = {};                     ///< when, by which version and on what processor, a sentence

  std::vector<ArmSummary> arms = {};  ///< sorted: the best score first, without a score last
  double target = 0;

  std::size_t finished() const;
  bool complete() const { return finished() == grid.arms.size() * grid.seeds.size(); }
};

/// Fills `arms` and `target` from the runs.
void summarise(Comparison& comparison);

/// The highest score, in three digits, that more than half of the arms reach with every seed; so a failed arm
/// does not lower it. 0 without runs. @param runs  as in Comparison.
double chooseTarget(const std::vector<std::vector<const RunRecord*>>& runs);

/// Samples per second of all workers of a projection, each training as many as a worker of the arm did.
double samplesPerSecond(const ArmSummary& arm, const Projection& projection);

/// What the comparison says, a sentence: which arms differ from the baseline by more than chance.
std::string conclusion(const Comparison& comparison);

}  // namespace comparing
