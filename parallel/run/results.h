#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "muster/core/eval/any_evaluation.h"
#include "muster/datasets/source/load_data.h"
#include "muster/parallel/parallel_wrapper.h"
#include "muster/parallel/run/run_file.h"
#include "muster/parallel/run/watchers.h"

namespace muster {

/// What came out of a training.
struct Results {
  const RunFile& run;
  const LoadedData& data;
  const Watchers& watchers;
  std::string plan;
  std::filesystem::path resumedFrom;  ///< "": it was not resumed
  std::int64_t epochsBefore = 0;      ///< of a resumed file
  std::int64_t epochs = 0;            ///< of the network, with these
  bool interrupted = false;
  Task task = Task::Classification;
  std::optional<AnyEvaluation> test = {};
  std::optional<std::int64_t> bytesSent = {};  ///< to other nodes
  double secondsInAll = 0;                     ///< of the whole program
};

/// The training's cost in a line that ends with a newline; "" if nothing was trained.
std::string costLine(const Results& results);

/// Writes the run and its results as JSON. @throws FileError; then the file is unchanged.
void writeResults(const std::filesystem::path& path, const Results& results);

}  // namespace muster
