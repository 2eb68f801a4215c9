#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "examples/support/data_sets.h"
#include "examples/support/device_option.h"

namespace example {

/// Command-line options. Batch size and learning rate are those of MXNet's chapter.
struct LenetOptions {
  DeviceChoice device;
  int devices = 1;  ///< number of replicas that share each batch: replica d uses device d mod D of the list
  std::int64_t batch = 256;
  std::int64_t epochs = 5;
  double learningRate = 0.2;
  std::int64_t seed = 123;
  DataChoice data;
  std::filesystem::path model;  ///< empty: not saved

  /// Device of each replica, [replica].
  std::vector<muster::Device> replicas() const;
};

/// Reads the command line. @return nothing if it printed the help.
/// @throws muster::InvalidArgument naming the option that is unknown or out of range.
std::optional<LenetOptions> readLenetOptions(int argc, const char* const* argv);

}  // namespace example
