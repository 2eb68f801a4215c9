#pragma once

#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "muster/core/device/device.h"

namespace muster {

/// Where to compute if the user named no device.
struct ChosenDevice {
  Device device = Device::cpu();
  /// For the user, as in "cuda:1, NVIDIA H100; cuda:0 cannot be used: it is busy": the name of the GPU, and
  /// why others were not taken. "" on a machine without a GPU.
  std::string why;
};

/// What a machine says of its GPUs.
struct MachineGpus {
  std::vector<Device> gpus = {};
  std::string whyNone = {};                        ///< why there are none
  bool hasDriver = false;                          ///< a GPU's driver is installed
  std::function<std::string(Device)> whyUnusable;  ///< "" where it can be used
  std::function<std::string(Device)> nameOf;

  /// The machine that this program runs on.
  static MachineGpus here();
};

/// The first GPU that can be used, else the CPU. The user asked for no GPU, so one that is busy, full or too
/// old is no error.
ChosenDevice chooseDevice(const MachineGpus& machine = MachineGpus::here());

/// All GPUs of this machine, as in `.devices(allGpus())`. @throws DeviceUnavailable with the reason if there
/// are none.
std::vector<Device> allGpus(const MachineGpus& machine = MachineGpus::here());

/// Why a device cannot be used: it is missing, busy, full, too old, or its libraries do not start. "" where
/// it can be. Makes a context there and destroys it.
std::string whyUnusable(Device device);

/// Tries the GPUs among `devices`, before anything that takes long.
/// @throws DeviceUnavailable naming the first that cannot be used, and why.
void requireUsable(std::span<const Device> devices);

/// Whether a device failed, or the memory of one ran out; also as the cause of a TrainingError.
bool isDeviceError(const std::exception_ptr& failure);

/// As in "cpu, cuda:0 and cuda:1".
std::string namesOf(std::span<const Device> devices);

}  // namespace muster
