#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "muster/core/comparison/arm_summary.h"
#include "muster/core/comparison/comparison_grid.h"
#include "muster/core/comparison/tuned_arm.h"

namespace muster {

/// How the arms of a comparison differ.
struct ComparisonSummary {
  ComparisonMetric metric;
  std::string baseline;          ///< the arm that the others are compared with
  double target = 0;             ///< a score, as it is recorded; NaN: none, each arm has a failed run
  std::vector<ArmSummary> arms;  ///< the best score first, without a score last
  /// Which arms differ from the baseline by more than chance, a sentence; before it another one if no arm is
  /// clearly better than one answer for all examples (guessRemark).
  std::string conclusion;
};

/// What to do about a remark, added to it, as in "--seeds 1,2,3,4,5 adds four"; empty: nothing is added.
struct ComparisonAdvice {
  std::string tuning = {};  ///< where nothing was tuned
  std::string seeds = {};   ///< where there is one seed
};

/// Arms (ways to train), each trained with several seeds, and how they differ: paired by seed, with the 95 %
/// intervals of Student's t.
///
///     Comparison comparison{.title = "Two averaging rules on digits"};
///     comparison.add(recorder->finish(wrapper));   // for each arm and seed; see RunRecorder
///     fmt::print("{}", comparison.text());
///     comparison.writeReport("rules");
///
/// One thread at a time.
struct Comparison {
  std::string title = {};                    ///< the report's headline
  std::vector<std::string> paragraphs = {};  ///< on data, network and how it is tested, a sentence each
  std::string baseline = {};                 ///< an arm's name; empty: the first arm
  std::optional<double> target = {};         ///< a score from 0 to 1, or R2; empty: chosen by chooseTarget
  std::optional<NetworkLink> link = {};      ///< also estimate the times on this link
  std::vector<TunedArm> tuned = {};          ///< how arms were tuned, if any was
  bool restoresBest = false;                 ///< early stopping gave each training its best model back
  std::string made = {};                     ///< when and by what the report was written, its last sentence
  ComparisonAdvice advice = {};

  /// Arms and seeds that are planned; `add` adds what is missing.
  ComparisonGrid grid = {};
  std::vector<std::vector<RunRecord>> runs = {};  ///< [arm of the grid][finished seed]; arms may be missing

  /// Adds a finished run. @throws InvalidArgument if the arm has a run with that seed, or the runs before
  /// have another metric.
  void add(RunRecord run);
  std::size_t finished() const;  ///< runs, also failed ones
  std::size_t planned() const { return grid.arms.size() * grid.seeds.size(); }

  /// @throws InvalidArgument if there is no arm, none called `baseline`, or there are runs of more arms than
  ///         `grid` has, or for a target above 1.
  ComparisonSummary summarise() const;
  /// Tables, what they mean and the conclusion, as plain text. @param columns  of sentences.
  /// @throws as summarise.
  std::string text(std::size_t columns = 110) const;
  /// How the arms were tuned, or that they were not; a sentence.
  std::string tuningNote() const;
  /// Writes into a directory report.html (one file with tables and figures), table.md, and each table and
  /// plot as CSV and SVG below `tables` and `plots`. Each file is replaced as a whole; tables and plots of an
  /// earlier report there that this one does not have are removed.
  /// @throws FileError naming what cannot be written; as summarise.
  void writeReport(const std::filesystem::path& directory) const;
};

}  // namespace muster
