#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/core/comparison/run_record.h"
#include "muster/parallel/run/run_file.h"

namespace comparing {

/// One training of a comparison: an arm with a seed.
struct Cell {
  std::string arm;                    ///< its name
  muster::RunFile run;                ///< with the seed
  std::vector<std::string> settings;  ///< as in RunRecord
  std::int64_t seed = 0;
  bool tuning = false;             ///< tested on the validation data, at its end alone
  std::int64_t testEvery = 0;      ///< samples
  std::filesystem::path curves{};  ///< a file for `muster page`; "": none
};

/// Trains a cell from its beginning, as `muster train` would. A training whose loss becomes NaN or infinite
/// ends and is recorded as a failure.
/// @param progress  called with the samples so far.
/// @return nothing if `stop` ended it. @throws TrainingError for any other failure.
std::optional<muster::RunRecord> trainCell(const Cell& cell,
                                           const std::function<void(std::int64_t)>& progress,
                                           const std::stop_token& stop);

}  // namespace comparing
