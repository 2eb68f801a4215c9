#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "examples/support/data_sets.h"
#include "examples/support/device_option.h"
#include "examples/support/image_placement.h"
#include "muster/core/nn/initializer.h"
#include "muster/parallel/training_mode.h"

namespace example {

/// What the command line can say. Batch, learning rate and first weights are those of the multi-GPU chapter
/// of "Dive into Deep Learning".
struct Options {
  int workers = 1;
  muster::TrainingMode mode = muster::TrainingMode::Averaging;
  std::int64_t averagingFrequency = 1;  ///< 1 in the other modes, which meet every iteration
  std::int64_t batch = 256;             ///< of each worker
  double learningRate = 0.1;            ///< 0.1 times the workers, where nothing else was said
  std::int64_t epochs = 10;             ///< of this run
  std::int64_t seed = 123;
  muster::Init init = muster::Init::normal(0.01);
  std::int64_t width = 64;  ///< channels of the first stage
  bool augment = false;     ///< random crops and mirrored images; with CIFAR-10 unless otherwise said

  int threadsPerWorker = 1;
  bool pinThreads = true;
  DeviceChoice device;
  PlacementWish placement = PlacementWish::Auto;

  DataChoice data{.name = "fashion", .names = kAllImages};

  std::filesystem::path out = "resnet18-fashion.svg";
  std::filesystem::path save, load;  ///< empty: not
};

/// Reads the command line. @return nothing where help was asked for and has been printed.
/// @throws muster::InvalidArgument with one sentence naming the option that is unknown or out of range.
std::optional<Options> readOptions(int argc, const char* const* argv);

}  // namespace example
