#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "muster/core/comparison/comparison_grid.h"
#include "muster/core/comparison/run_record.h"

namespace muster {

/// The finished runs of a comparison in a file that is never half-written, from which an interrupted
/// comparison continues: a line of JSON with the grid, then one line for each run. Runs are identified by
/// settings and seed. One thread at a time.
///
///     ResultsFile results("rules/results.jsonl");
///     results.join(comparison.grid);
///     // for each arm and seed:
///     if (results.find(settings, seed) == nullptr) results.add(recorder->finish(wrapper));
///     // at the end:
///     for (const auto& run : results.runs()) comparison.add(run);
class ResultsFile {
 public:
  /// Reads the file if it is there.
  /// @param other  what the user can give instead, for errors, as in "another --out".
  /// @throws FileError naming the file if it is no such file, cannot be read, or contains a run twice (with
  ///         the line).
  explicit ResultsFile(std::filesystem::path path, std::string other = "another file");

  /// Whether there is no file yet.
  bool fresh() const { return fresh_; }
  /// Joins what is to be compared now with what the file has: arms, seeds and values of the tuned fields are
  /// added, and what `now` leaves open (no arm, no seed, no tuning, no `testEvery`) is the file's.
  /// @throws FileError naming the differences if the common settings, the data, the tests, the tuned fields
  ///         or an arm of the same name differ.
  void join(const ComparisonGrid& now);

  const std::filesystem::path& path() const { return path_; }
  /// What is compared: the file's, and after `join` with what was joined.
  const ComparisonGrid& grid() const { return grid_; }
  /// The finished runs in order.
  const std::vector<RunRecord>& runs() const { return runs_; }
  /// The run with these settings and seed; nullptr if it is not finished.
  const RunRecord* find(const std::vector<std::string>& settings, std::int64_t seed) const;

  /// Adds a run and writes the file. @throws FileError; then the file is unchanged. InvalidArgument if a
  /// finished run has these settings and seed.
  void add(RunRecord run);

 private:
  void read(const std::string& text);

  std::filesystem::path path_;
  std::string other_;
  bool fresh_ = true;
  ComparisonGrid grid_;
  std::vector<RunRecord> runs_;
};

}  // namespace muster
