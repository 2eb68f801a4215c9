#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "examples/support/data_sets.h"

namespace example {

/// Command-line options.
struct FineTuneOptions {
  static constexpr std::int64_t kBatch = 32;

  std::filesystem::path weights = {};  ///< empty: the program makes a file by itself
  std::filesystem::path model = "fine-tuned.safetensors", backbone = "backbone.safetensors";
  std::filesystem::path json = {};  ///< empty: not written
  DataChoice data{.name = "generated", .examples = 3000, .names = kAllImages};
  int workers = 2;
  std::int64_t epochs = 3, seed = 1, trainedBatch = kBatch;
  double learningRate = 0.02;
  double backboneRate = 0;  ///< 0: frozen
  bool imagenet = false;
};

/// Reads the command line. @return nothing if it printed the help.
/// @throws muster::InvalidArgument naming the option that is unknown or out of range.
std::optional<FineTuneOptions> readFineTuneOptions(int argc, const char* const* argv);

}  // namespace example
