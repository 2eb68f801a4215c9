#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "examples/support/training_options.h"
#include "muster/core/nn/initializer.h"

namespace example {

/// Command-line options. Batch, learning rate and first weights are those of the multi-GPU chapter of "Dive
/// into Deep Learning".
struct Resnet18Options : WorkerOptions {
  Resnet18Options() {
    workers = 1;
    averagingFrequency = 1;
  }

  std::int64_t batch = 256;   ///< per worker
  double learningRate = 0.1;  ///< default: 0.1 times the number of workers
  std::int64_t epochs = 10;   ///< of this run
  std::int64_t seed = 123;
  muster::Init init = muster::Init::normal(0.01);
  std::int64_t width = 64;  ///< channels of the first stage
  bool augment = false;     ///< random crops and mirrored images; default: only with CIFAR-10
  muster::PlacementWish placement = muster::PlacementWish::Auto;
  DataChoice data{.name = "fashion", .names = kAllImages};

  std::filesystem::path report, json, save, load;  ///< empty: not used
};

/// Reads the command line. @return nothing if it printed the help.
/// @throws muster::InvalidArgument naming the option that is unknown or out of range.
std::optional<Resnet18Options> readResnet18Options(int argc, const char* const* argv);

}  // namespace example
