#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "examples/support/command_line.h"
#include "examples/support/data_sets.h"
#include "examples/support/device_option.h"
#include "examples/support/nodes.h"
#include "examples/support/watching.h"
#include "muster/core/listeners/watch/hyper_parameter.h"
#include "muster/datasets/image_placement.h"
#include "muster/parallel/parallel_wrapper.h"

namespace example {

/// Options for the workers of a training, shared by several programs.
struct WorkerOptions {
  int workers = 2;
  muster::TrainingMode mode = muster::TrainingMode::Averaging;
  std::int64_t averagingFrequency = 3;  ///< 1 in the other modes, which merge every iteration
  std::string strategy = {};            ///< by name, instead of mode and frequency; "": not used
  std::string strategyOptions = {};     ///< for example "rate=0.7,every=100"
  int threadsPerWorker = 1;
  bool pinThreads = true;
  std::optional<muster::MathMode> mathMode = {};  ///< empty: the device's default
  DeviceOption deviceOption = DeviceOption();
  DeviceChoice device = {};
  NodeOptions nodeOptions = {};  ///< has its own `describe`, for programs that train on several nodes
  muster::Nodes nodes = {};      ///< set by that program
  WatchOptions watch = {};       ///< has its own `describe`

  /// Adds these options.
  void describe(CommandLine& line);
  /// The number of workers of all nodes, before these are connected.
  /// @throws muster::InvalidArgument if it is above 1024.
  int workersOfAll() const;
  /// Takes the options after they were read. @throws muster::InvalidArgument naming an option without effect;
  /// muster::DeviceUnavailable.
  void take(const CommandLine& line);
  /// A builder with these options. @param model  must outlive it.
  muster::ParallelWrapper::Builder builder(muster::Model& model) const;
  /// These options by name, for the page and TensorBoard.
  std::vector<muster::HyperParameter> hyperParameters() const;
};

/// The default learning rate of an updater given by name: its own, at most 0.01.
/// @throws muster::InvalidArgument for an unknown name.
double defaultLearningRate(std::string_view updater);

/// Adds `--placement`.
void describePlacement(CommandLine& line, muster::PlacementWish& wish);

/// Places the training and test images and records the placement in `data`.
/// @return a line for the user, or "".
std::string placeImages(DataSets& data, muster::PlacementWish wish, std::span<const muster::Device> devices,
                        int workers);

}  // namespace example
