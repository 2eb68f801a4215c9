#include "muster/core/device/choose_device.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "muster/core/base/error.h"
#include "muster/core/device/context.h"

namespace muster {
namespace {

/// Whether a GPU driver's device file exists (WSL's has another name), even if this build cannot use it.
bool driverIsInstalled() {
  std::error_code unreadable;
  return std::filesystem::exists("/dev/nvidiactl", unreadable) ||
         std::filesystem::exists("/dev/dxg", unreadable);
}

}  // namespace

MachineGpus MachineGpus::here() {
  auto gpus = availableDevices();
  std::erase(gpus, Device::cpu());
  return {.gpus = std::move(gpus),
          .whyNone = whyNoCuda(),
          .hasDriver = driverIsInstalled(),
          .whyUnusable = muster::whyUnusable,
          .nameOf = [](Device device) { return propertiesOf(device).name; }};
}

std::vector<Device> allGpus(const MachineGpus& machine) {
  if (machine.gpus.empty())
    throw DeviceUnavailable(fmt::format("allGpus: there is no GPU: {}", machine.whyNone));
  return machine.gpus;
}

ChosenDevice chooseDevice(const MachineGpus& machine) {
  if (machine.gpus.empty()) return {.why = machine.hasDriver ? fmt::format("cpu: {}", machine.whyNone) : ""};
  std::string unusable;  // the reasons why earlier GPUs cannot be used
  for (const Device gpu : machine.gpus) {
    const auto why = machine.whyUnusable(gpu);
    if (why.empty()) return {gpu, fmt::format("{}, {}{}", gpu.toString(), machine.nameOf(gpu), unusable)};
    unusable += fmt::format("; {} cannot be used: {}", gpu.toString(), why);
  }
  return {.why = "cpu" + unusable};
}

std::string whyUnusable(Device device) {
  try {
    const Context usable(device);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

void requireUsable(std::span<const Device> devices) {
  for (const Device device : devices)
    if (const auto why = device.isCpu() ? std::string() : whyUnusable(device); !why.empty())
      throw DeviceUnavailable(fmt::format("{} cannot be used: {}", device.toString(), why));
}

bool isDeviceError(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const TrainingError& error) {
    return error.cause() && isDeviceError(error.cause());
  } catch (const OutOfMemory&) {
    return true;
  } catch (const DeviceUnavailable&) {
    return true;
  } catch (const DeviceFailure&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::string namesOf(std::span<const Device> devices) {
  std::string names;
  for (std::size_t i = 0; i < devices.size(); ++i)
    names += (i == 0 ? "" : i + 1 == devices.size() ? " and " : ", ") + devices[i].toString();
  return names;
}

}  // namespace muster
