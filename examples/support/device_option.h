#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "muster/core/device/device.h"

namespace example {

struct DeviceChoice {
  std::vector<muster::Device> devices = {muster::Device::cpu()};
  /// For a user who did not ask for the GPU that is used: its name, and how to have the CPU instead; or why a
  /// GPU that is there is not used. "" where there is nothing to tell.
  std::string notice = {};
};

/// As in "cpu, cuda:0 and cuda:1".
std::string listOf(const std::vector<muster::Device>& devices);

/// On which devices a program trains: what `--device` says, and without it the first GPU, where there is one.
class DeviceOption {
 public:
  /// Adds `--device` to a description.
  void describe(boost::program_options::options_description& options);
  /// Worker i computes on device i mod D of these. When the command line has been read.
  /// @throws muster::InvalidArgument for a list that names no devices, one of them twice, or GPUs and the CPU
  ///         together; muster::DeviceUnavailable for a device that is not there, naming those that are.
  DeviceChoice choose() const;

 private:
  std::string list_;  // "": nothing was said
};

}  // namespace example
