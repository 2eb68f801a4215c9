#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "examples/muster/compare/arms.h"
#include "examples/muster/compare/run_record.h"

namespace comparing {

/// What is compared, and how it is measured.
struct Grid {
  std::map<std::string, std::string> settings = {};  ///< of the run file, by path
  std::int64_t trainExamples = 0, testExamples = 0;
  std::int64_t testEvery = 0;  ///< samples; 0: not given
  std::string metric = {};     ///< accuracy or r2
  std::vector<Arm> arms = {};
  std::vector<std::int64_t> seeds = {};
  std::vector<std::string> tune = {};  ///< as --tune has it
};

/// The finished runs of a comparison in a file that is never half-written: a line of JSON with the grid, then
/// one line for each run. One thread at a time.
class ResultsFile {
 public:
  /// Reads the file if it is there.
  /// @throws FileError naming the file if it was not written by this program, cannot be read, or contains a
  ///         run twice (with the line).
  explicit ResultsFile(std::filesystem::path path);

  /// Joins what is to be compared now with what the file has: arms and seeds are added, and what `now` leaves
  /// open (no arm, no seed, no tuning, no `testEvery`) is the file's.
  /// @throws FileError naming the differences if the run file, the data, the tests, the tuning or an arm of
  /// the
  ///         same name differ.
  void join(const Grid& now);

  const std::filesystem::path& path() const { return path_; }
  /// After `join`.
  const Grid& grid() const { return grid_; }
  /// The finished runs in order.
  const std::vector<RunRecord>& runs() const { return runs_; }
  /// The run with these values and seed; nullptr if it is not finished.
  const RunRecord* find(const std::vector<std::string>& values, std::int64_t seed) const;

  /// Adds a run and writes the file. @throws FileError; then the file is unchanged.
  void add(RunRecord run);

 private:
  void read(const std::string& text);

  std::filesystem::path path_;
  Grid grid_;
  std::vector<RunRecord> runs_;
};

}  // namespace comparing
