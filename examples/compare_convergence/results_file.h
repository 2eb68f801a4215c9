#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "examples/compare_convergence/run_record.h"

namespace convergence {

/// What decides the numbers of a comparison: options by name, with their values.
using Recipe = std::vector<std::pair<std::string, std::string>>;

/// The finished runs of one comparison in a file that is never half-written: a line of JSON with the recipe,
/// then a line a run. One thread at a time.
class ResultsFile {
 public:
  /// Reads the file if it is there.
  /// @throws FileError naming the file for one of another recipe (with the options that differ), one that was
  /// not written by this program, and one that cannot be read or holds a run twice (naming the line).
  ResultsFile(std::filesystem::path path, Recipe recipe);

  const std::filesystem::path& path() const { return path_; }
  /// In the order in which they were finished.
  const std::vector<RunRecord>& runs() const { return runs_; }
  const RunRecord* find(const Arm& arm, std::int64_t seed) const;

  /// Adds a run, on the disk too. @throws FileError; then the file is what it was before.
  void add(RunRecord run);

 private:
  void read(const std::string& text);

  std::filesystem::path path_;
  Recipe recipe_;
  std::vector<RunRecord> runs_;
};

}  // namespace convergence
