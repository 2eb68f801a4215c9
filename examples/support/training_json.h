#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "muster/core/io/json_fields.h"

namespace example {

/// What an epoch came to.
struct EpochResult {
  std::int64_t epoch = 1;                      ///< from 1, over the network's life
  double loss = 0;                             ///< mean over the training batches
  std::optional<double> testAccuracy = {};     ///< from 0 to 1
  std::optional<double> trainingSeconds = {};  ///< without the test
};

/// What `--json` holds of a training.
struct TrainingJson {
  std::string_view data, dataFrom;
  /// Puts the program's options.
  std::function<void(muster::JsonWriter&)> options;
  std::string_view plan;
  bool interrupted = false;
  const std::vector<EpochResult>& epochs;

  /// @throws muster::FileError.
  void write(const std::filesystem::path& path) const;
};

}  // namespace example
