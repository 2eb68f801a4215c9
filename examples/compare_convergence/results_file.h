#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "examples/compare_convergence/run_record.h"

namespace convergence {

/// The options that decide the results of a comparison, with their values.
using Recipe = std::vector<std::pair<std::string, std::string>>;

/// The finished runs of one comparison in a file that is never half-written: a line of JSON with the recipe,
/// then one line per run. One thread at a time.
class ResultsFile {
 public:
  /// Reads the file if it is there.
  /// @throws FileError naming the file if it has another recipe (with the options that differ), was not
  ///         written by this program, cannot be read, or contains a run twice (with the line).
  ResultsFile(std::filesystem::path path, Recipe recipe);

  const std::filesystem::path& path() const { return path_; }
  /// The finished runs in order.
  const std::vector<RunRecord>& runs() const { return runs_; }
  const RunRecord* find(const Arm& arm, std::int64_t seed) const;

  /// Adds a run and writes the file. @throws FileError; then the file is unchanged.
  void add(RunRecord run);

 private:
  void read(const std::string& text);

  std::filesystem::path path_;
  Recipe recipe_;
  std::vector<RunRecord> runs_;
};

}  // namespace convergence
