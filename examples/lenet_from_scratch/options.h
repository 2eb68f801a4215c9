#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "examples/support/data_sets.h"
#include "examples/support/device_option.h"

namespace example {

/// What the command line can say. Batch size and learning rate are those of MXNet's chapter.
struct Options {
  DeviceChoice device;
  int devices = 1;  ///< that share each batch: replica d computes on device d mod D of the list
  std::int64_t batch = 256;
  std::int64_t epochs = 5;
  double learningRate = 0.2;
  std::int64_t seed = 123;
  DataChoice data;
  std::filesystem::path model;  ///< empty: nothing is saved

  /// Where each replica computes, [replica].
  std::vector<muster::Device> replicas() const;
};

/// Reads the command line. @return nothing where help was asked for and has been printed.
/// @throws muster::InvalidArgument with one sentence naming the option that is unknown or out of range.
std::optional<Options> readOptions(int argc, const char* const* argv);

}  // namespace example
