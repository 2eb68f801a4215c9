#include "examples/support/device_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "muster/core/base/error.h"

namespace example {
namespace {

using muster::Device;

constexpr std::string_view kAdvice = "; --device cpu computes on the CPU instead";

void requireThere(const std::string& option, const std::string& list, Device device) {
  const auto there = muster::availableDevices();
  if (std::ranges::find(there, device) != there.end()) return;
  const auto why = muster::whyNoCuda();
  throw muster::DeviceUnavailable(fmt::format("{} {}: {} is not there; there {} {}{}{}", option, list,
                                              device.toString(), there.size() == 1 ? "is" : "are",
                                              muster::namesOf(there), why.empty() ? "" : " alone, as ", why));
}

}  // namespace

DeviceChoice chooseUnasked(const muster::MachineGpus& machine) {
  const auto [device, why] = muster::chooseDevice(machine);
  const auto notice = why.empty() ? "" : fmt::format("device: {}{}", why, device.isCpu() ? "" : kAdvice);
  return {.devices = {device}, .notice = notice, .unasked = !device.isCpu()};
}

void requireUsable(const DeviceChoice& choice) {
  if (!choice.unasked) muster::requireUsable(choice.devices);
}

int runOn(const DeviceChoice& choice, const std::function<int()>& run) {
  try {
    return run();
  } catch (const muster::Error& error) {
    if (!choice.unasked || !muster::isDeviceError(std::current_exception())) throw;
    throw muster::Error(fmt::format("{}{}", error.what(), kAdvice));
  }
}

DeviceChoice devicesNamed(const std::string& option, const std::string& list) {
  std::vector<Device> devices;
  try {
    devices = Device::parseList(list);
  } catch (const muster::InvalidArgument& error) {
    throw muster::InvalidArgument(fmt::format("{} {}: {}", option, list, error.what()));
  }
  for (const Device device : devices)
    muster::require(device.isCpu() == devices.front().isCpu(),
                    "{} {}: the CPU and GPUs cannot train together yet; name GPUs alone, or cpu alone",
                    option, list);
  for (const Device device : devices) requireThere(option, list, device);
  return {.devices = std::move(devices)};
}

}  // namespace example
