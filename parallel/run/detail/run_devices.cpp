#include "muster/parallel/run/detail/run_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "muster/core/base/error.h"

namespace muster::detail {
namespace {

constexpr std::string_view kAdvice = "; training.devices=cpu computes on the CPU instead";

void requireThere(const std::string& field, const std::string& list, Device device) {
  const auto there = availableDevices();
  if (std::ranges::find(there, device) != there.end()) return;
  const auto why = whyNoCuda();
  throw DeviceUnavailable(fmt::format("{} {}: {} is not there; there {} {}{}{}", field, list,
                                      device.toString(), there.size() == 1 ? "is" : "are", namesOf(there),
                                      why.empty() ? "" : " alone, as ", why));
}

}  // namespace

RunDevices chooseUnasked(const MachineGpus& machine) {
  const auto [device, why] = chooseDevice(machine);
  const auto notice = why.empty() ? "" : fmt::format("device: {}{}", why, device.isCpu() ? "" : kAdvice);
  return {.devices = {device}, .notice = notice, .unasked = !device.isCpu()};
}

void requireUsable(const RunDevices& choice) {
  if (!choice.unasked) requireUsable(choice.devices);
}

int runOn(const RunDevices& choice, const std::function<int()>& run) {
  try {
    return run();
  } catch (const Error& error) {
    if (!choice.unasked || !isDeviceError(std::current_exception())) throw;
    throw Error(fmt::format("{}{}", error.what(), kAdvice));
  }
}

RunDevices devicesNamed(const std::string& field, const std::string& list) {
  std::vector<Device> devices;
  try {
    devices = Device::parseList(list);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{} {}: {}", field, list, error.what()));
  }
  for (const Device device : devices)
    require(device.isCpu() == devices.front().isCpu(),
            "{} {}: the CPU and GPUs cannot train together yet; name GPUs alone, or cpu alone", field, list);
  for (const Device device : devices) requireThere(field, list, device);
  return {.devices = std::move(devices)};
}

}  // namespace muster::detail
