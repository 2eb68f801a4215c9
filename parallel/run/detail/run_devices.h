#pragma once

#include <functional>
#include <string>

#include "muster/core/device/choose_device.h"
#include "muster/parallel/run/prepared_run.h"

namespace muster::detail {

/// The devices if the run file names none.
RunDevices chooseUnasked(const MachineGpus& machine = MachineGpus::here());

/// Tests the GPUs that the run file names before anything that takes long; chosen ones are already tested.
/// @throws DeviceUnavailable naming the one that is busy, full or too old, and why.
void requireUsable(const RunDevices& choice);

/// Calls `run`, which computes on `choice`. If a GPU that the run file does not name fails, the error
/// explains how to choose the CPU.
int runOn(const RunDevices& choice, const std::function<int()>& run);

/// The devices of a list as in "cuda:0,cuda:1". @param field  that has it, for errors.
/// @throws InvalidArgument for a list that names no devices, one of them twice, or GPUs and the CPU
///         together; DeviceUnavailable for a device that is missing, naming those that are there.
RunDevices devicesNamed(const std::string& field, const std::string& list);

}  // namespace muster::detail
