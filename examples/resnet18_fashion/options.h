#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "examples/support/training_options.h"
#include "muster/core/nn/initializer.h"

namespace example {

/// What the command line can say. Batch, learning rate and first weights are those of the multi-GPU chapter
/// of "Dive into Deep Learning".
struct Options : WorkerOptions {
  Options() {
    workers = 1;
    averagingFrequency = 1;
  }

  std::int64_t batch = 256;   ///< of each worker
  double learningRate = 0.1;  ///< 0.1 times the workers, where nothing else was said
  std::int64_t epochs = 10;   ///< of this run
  std::int64_t seed = 123;
  muster::Init init = muster::Init::normal(0.01);
  std::int64_t width = 64;  ///< channels of the first stage
  bool augment = false;     ///< random crops and mirrored images; with CIFAR-10 unless otherwise said
  muster::PlacementWish placement = muster::PlacementWish::Auto;
  DataChoice data{.name = "fashion", .names = kAllImages};

  std::filesystem::path report, json, save, load;  ///< empty: not
};

/// Reads the command line. @return nothing where help was asked for and has been printed.
/// @throws muster::InvalidArgument with one sentence naming the option that is unknown or out of range.
std::optional<Options> readOptions(int argc, const char* const* argv);

}  // namespace example
