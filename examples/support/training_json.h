#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "muster/core/io/json_fields.h"

namespace example {

/// Results of an epoch.
struct EpochResult {
  std::int64_t epoch = 1;                      ///< from 1, counted since the network's creation
  double loss = 0;                             ///< mean over the training batches
  std::optional<double> testAccuracy = {};     ///< from 0 to 1
  std::optional<double> trainingSeconds = {};  ///< without the test
};

/// The content of the file of `--json`.
struct TrainingJson {
  std::string_view data, dataFrom;
  /// Writes the program's options.
  std::function<void(muster::JsonWriter&)> options;
  std::string_view plan;
  bool interrupted = false;
  const std::vector<EpochResult>& epochs;

  /// @throws muster::FileError.
  void write(const std::filesystem::path& path) const;
};

}  // namespace example
