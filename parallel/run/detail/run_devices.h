#pragma once

#include <functional>
#include <string>
#include <vector>

#include "muster/core/device/choose_device.h"

namespace muster::detail {

struct DeviceChoice {
  std::vector<Device> devices = {Device::cpu()};
  /// If the user named no device: which GPU is used and how to choose the CPU, or why no GPU is used. "" if
  /// no notice is needed.
  std::string notice = {};
  bool unasked = false;  ///< the devices are GPUs that the user did not name
};

/// The devices if the user named none.
DeviceChoice chooseUnasked(const MachineGpus& machine = MachineGpus::here());

/// Tests the GPUs that the user named before anything that takes long; chosen ones are already tested.
/// @throws DeviceUnavailable naming the one that is busy, full or too old, and why.
void requireUsable(const DeviceChoice& choice);

/// Calls `run`, which computes on `choice`. If a GPU that the user did not name fails, the error explains how
/// to choose the CPU.
int runOn(const DeviceChoice& choice, const std::function<int()>& run);

/// The devices that the user named. Worker i computes on device i mod D of these.
/// @param option  that named them, for errors.
/// @throws InvalidArgument for a list that names no devices, one of them twice, or GPUs and the CPU
///         together; DeviceUnavailable for a device that is missing, naming those that are there.
DeviceChoice devicesNamed(const std::string& option, const std::string& list);

}  // namespace muster::detail
