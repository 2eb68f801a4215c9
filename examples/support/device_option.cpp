#include "examples/support/device_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "examples/support/command_line.h"
#include "muster/core/base/error.h"
#include "muster/core/device/context.h"

namespace example {
namespace {

using muster::Device;

void requireThere(const std::string& list, Device device) {
  const auto there = muster::availableDevices();
  if (std::ranges::find(there, device) != there.end()) return;
  const auto why = muster::whyNoCuda();
  throw muster::DeviceUnavailable(fmt::format("--device {}: {} is not there; there {} {}{}{}", list,
                                              device.toString(), there.size() == 1 ? "is" : "are",
                                              listOf(there), why.empty() ? "" : " alone, as ", why));
}

/// Whether the driver of a GPU has left its mark (WSL's is another one), whatever this build makes of it.
bool driverIsThere() {
  std::error_code unreadable;
  return std::filesystem::exists("/dev/nvidiactl", unreadable) ||
         std::filesystem::exists("/dev/dxg", unreadable);
}

/// Nobody asked for it, so a GPU that cannot be used is no error: one that is full, or whose libraries do not
/// start.
DeviceChoice firstGpu() {
  const Device device = muster::defaultDevice();
  if (device.isCpu() && !driverIsThere()) return {};
  if (device.isCpu()) return {.notice = fmt::format("device: cpu: {}", muster::whyNoCuda())};
  try {
    const muster::Context usable(device);
  } catch (const muster::Error& error) {
    return {.notice = fmt::format("device: cpu, as {} cannot be used: {}", device.toString(), error.what())};
  }
  return {.devices = {device},
          .notice = fmt::format("device: {}, {}; --device cpu computes on the CPU instead", device.toString(),
                                muster::propertiesOf(device).name)};
}

}  // namespace

std::string listOf(const std::vector<Device>& devices) {
  std::string names;
  for (std::size_t i = 0; i < devices.size(); ++i)
    names += (i == 0 ? "" : i + 1 == devices.size() ? " and " : ", ") + devices[i].toString();
  return names;
}

void DeviceOption::describe(boost::program_options::options_description& options) {
  options.add_options()(
      "device", value(list_, "LIST"),
      "cpu, cuda, cuda:1, or a list as in cuda:0,cuda:1: worker i computes on device i of the "
      "list, and beyond its end from its beginning again. Without a word: the first GPU where "
      "there is one, else the CPU");
}

DeviceChoice DeviceOption::choose() const {
  if (list_.empty()) return firstGpu();
  std::vector<Device> devices;
  try {
    devices = Device::parseList(list_);
  } catch (const muster::InvalidArgument& error) {
    throw muster::InvalidArgument(fmt::format("--device {}: {}", list_, error.what()));
  }
  for (const Device device : devices)
    muster::require(device.isCpu() == devices.front().isCpu(),
                    "--device {}: the CPU and GPUs cannot train together yet; name GPUs alone, or cpu alone",
                    list_);
  for (const Device device : devices) requireThere(list_, device);
  return {.devices = std::move(devices)};
}

}  // namespace example
