#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "examples/muster/compare/base_run.h"
#include "examples/muster/compare/cell.h"
#include "muster/core/comparison/comparison.h"
#include "muster/core/comparison/results_file.h"

namespace comparing {

/// A comparison under way: which runs its arms need, and which are finished.
class GridSession {
 public:
  /// After `ResultsFile::join`. The arguments must outlive it.
  GridSession(const BaseRun& base, muster::ResultsFile& results, const std::filesystem::path& out);

  muster::ResultsFile& results() { return results_; }
  const muster::ComparisonGrid& grid() const { return results_.grid(); }
  const std::filesystem::path& out() const { return out_; }
  /// The values to tune an arm with; empty: it is not tuned.
  const std::vector<muster::TuningChoice>& choices(std::size_t arm) const { return choices_[arm]; }

  /// What an arm's choice sets.
  std::vector<std::string> tuningSets(std::size_t arm, const muster::TuningChoice& choice) const;
  /// What an arm sets, with what tuning has chosen; nothing while that is not known.
  std::optional<std::vector<std::string>> chosenSets(std::size_t arm);
  Cell cell(std::size_t arm, const std::vector<std::string>& sets, std::int64_t seed);
  /// nullptr if it is not finished.
  const muster::RunRecord* result(const std::vector<std::string>& sets, std::int64_t seed);
  /// Takes the finished runs.
  void refresh(muster::Comparison& comparison);
  /// Refuses two arms that are the same training, or whose files would have the same name.
  void requireDifferent();

 private:
  /// The choice of an arm, if all its tuning runs are finished.
  std::optional<muster::TunedArm> tunedArm(std::size_t arm);
  const std::vector<std::string>& settingsOf(const std::vector<std::string>& sets);

  const BaseRun& base_;
  muster::ResultsFile& results_;
  const std::filesystem::path& out_;
  std::vector<std::vector<muster::TuningChoice>> choices_;                 // [arm]
  std::map<std::vector<std::string>, std::vector<std::string>> settings_;  // of a run, by what it sets
};

}  // namespace comparing
