#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "examples/support/command_line.h"
#include "muster/core/device/choose_device.h"

namespace example {

struct DeviceChoice {
  std::vector<muster::Device> devices = {muster::Device::cpu()};
  /// If the user named no device: which GPU is used and how to have the CPU instead; or why a GPU is not
  /// used. "" where there is nothing to tell.
  std::string notice = {};
  bool unasked = false;  ///< these are GPUs, and the user did not name them
};

/// The devices of a program whose user named none.
DeviceChoice chooseUnasked(const muster::MachineGpus& machine = muster::MachineGpus::here());

/// Tries the GPUs that the user named, before anything that takes long; the others have been tried.
/// @throws muster::DeviceUnavailable naming the one that is busy, full or too old, and why.
void requireUsable(const DeviceChoice& choice);

/// Calls `run`, which computes on `choice`. Where a GPU that the user did not name fails it, the error says
/// how to have the CPU.
int runOn(const DeviceChoice& choice, const std::function<int()>& run);

/// Where a program trains that was not told.
enum class Unasked {
  FirstGpu,  ///< that can be used, where there is one
  Cpu        ///< what the program shows is shown there
};

/// On which devices a program trains: what `--device` says.
class DeviceOption {
 public:
  explicit DeviceOption(Unasked unasked = Unasked::FirstGpu) : unasked_(unasked) {}
  /// Adds `--device`. @param what  computes there, in the singular.
  void describe(CommandLine& line, std::string_view what = "worker");
  /// When the command line has been read. Worker i computes on device i mod D of these.
  /// @throws muster::InvalidArgument for a list that names no devices, one of them twice, or GPUs and the CPU
  ///         together; muster::DeviceUnavailable for a device that is missing, naming those that are there.
  DeviceChoice choose() const;

 private:
  Unasked unasked_;
  std::optional<std::string> list_;  // none: nothing was said
};

}  // namespace example
