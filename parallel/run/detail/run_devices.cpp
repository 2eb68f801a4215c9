#include "muster/parallel/run/detail/run_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "muster/core/base/error.h"

namespace muster::detail {
namespace {

constexpr std::string_view kAdvice = "; --device cpu computes on the CPU instead";

void requireThere(const std::string& option, const std::string& list, Device device) {
  const auto there = availableDevices();
  if (std::ranges::find(there, device) != there.end()) return;
  const auto why = whyNoCuda();
  throw DeviceUnavailable(fmt::format("{} {}: {} is not there; there {} {}{}{}", option, list,
                                      device.toString(), there.size() == 1 ? "is" : "are", namesOf(there),
                                      why.empty() ? "" : " alone, as ", why));
}

}  // namespace

DeviceChoice chooseUnasked(const MachineGpus& machine) {
  const auto [device, why] = chooseDevice(machine);
  const auto notice = why.empty() ? "" : fmt::format("device: {}{}", why, device.isCpu() ? "" : kAdvice);
  return {.devices = {device}, .notice = notice, .unasked = !device.isCpu()};
}

void requireUsable(const DeviceChoice& choice) {
  if (!choice.unasked) requireUsable(choice.devices);
}

int runOn(const DeviceChoice& choice, const std::function<int()>& run) {
  try {
    return run();
  } catch (const Error& error) {
    if (!choice.unasked || !isDeviceError(std::current_exception())) throw;
    throw Error(fmt::format("{}{}", error.what(), kAdvice));
  }
}

DeviceChoice devicesNamed(const std::string& option, const std::string& list) {
  std::vector<Device> devices;
  try {
    devices = Device::parseList(list);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{} {}: {}", option, list, error.what()));
  }
  for (const Device device : devices)
    require(device.isCpu() == devices.front().isCpu(),
            "{} {}: the CPU and GPUs cannot train together yet; name GPUs alone, or cpu alone", option, list);
  for (const Device device : devices) requireThere(option, list, device);
  return {.devices = std::move(devices)};
}

}  // namespace muster::detail
