#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "examples/support/training_options.h"
#include "muster/core/optim/updaters.h"

namespace example {

/// Command-line options. The defaults are those of Deeplearning4j's acceptance test.
struct Options : WorkerOptions {
  bool averageUpdaters = true;
  std::int64_t batch = 128;
  std::int64_t epochs = 3;  ///< total, including those of a resumed file
  std::string updater = "nesterovs";
  double learningRate = 0.01;
  double momentum = 0.9;  ///< of nesterovs
  double l2 = 5e-4;
  std::int64_t seed = 123;
  std::int64_t prefetch = 24;
  muster::PlacementWish placement = muster::PlacementWish::Auto;
  DataChoice data;

  std::filesystem::path model = "mnist-convnet.safetensors";
  std::filesystem::path resume, checkpointDirectory, report, json;  ///< empty: not used
  std::int64_t checkpointEvery = 1;                                 ///< epochs
  std::int64_t checkpointIterations = 0;                            ///< iterations; 0: none
  double checkpointMinutes = 0;                                     ///< minutes; 0: none
  std::int64_t keep = 0;
  std::int64_t testEvery = 0, testIterations = 0;
  bool quiet = false;

  muster::Updater makeUpdater() const;
};

/// Reads the command line. @return nothing if it printed the help.
/// @throws muster::InvalidArgument naming the option that is unknown or out of range.
std::optional<Options> readOptions(int argc, const char* const* argv);

}  // namespace example
