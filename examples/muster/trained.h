#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "examples/muster/command_line.h"
#include "examples/muster/commands.h"
#include "muster/core/nn/network.h"
#include "muster/datasets/source/load_data.h"
#include "muster/parallel/run/run_file.h"

namespace program {

/// Options of the commands that use a trained network.
struct TrainedOptions {
  std::vector<std::string> sets;
  std::filesystem::path model, out, json;
  std::string on = "test";
};

/// Adds `--set`, `--model` and `--on`.
void describeTrained(CommandLine& line, TrainedOptions& options);

/// A run's data and its trained network. Of a table or a folder of pictures that is tested alone the examples
/// to train with are not read: the model's file describes them.
struct Trained {
  muster::RunFile run;
  muster::LoadedData data;
  std::unique_ptr<muster::Network> network;

  /// What is held out is what was held out when the model was trained.
  /// @throws InvalidArgument if the data have other columns or classes than the model; FileError if they are
  ///         divided otherwise than for its training, or the examples to train with have changed since.
  Trained(const Call& call, const TrainedOptions& options);

  /// The data that `--on` names. @throws InvalidArgument if the run has none.
  muster::DataSetIterator& on(const std::string& which) const;
};

}  // namespace program
