#include "examples/support/device_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
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

std::string whyUnusable(Device device) {
  try {
    const muster::Context usable(device);
    return {};
  } catch (const muster::Error& error) {
    return error.what();
  }
}

/// Whether a device failed, or the memory of one ran out.
bool isOfDevice(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const muster::TrainingError& error) {
    return error.cause() && isOfDevice(error.cause());
  } catch (const muster::OutOfMemory&) {
    return true;
  } catch (const muster::DeviceUnavailable&) {
    return true;
  } catch (const muster::DeviceFailure&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

std::string listOf(const std::vector<Device>& devices) {
  std::string names;
  for (std::size_t i = 0; i < devices.size(); ++i)
    names += (i == 0 ? "" : i + 1 == devices.size() ? " and " : ", ") + devices[i].toString();
  return names;
}

Machine Machine::here() {
  auto gpus = muster::availableDevices();
  std::erase(gpus, Device::cpu());
  return {.gpus = std::move(gpus),
          .whyNone = muster::whyNoCuda(),
          .hasDriver = driverIsThere(),
          .whyUnusable = example::whyUnusable,
          .nameOf = [](Device device) { return muster::propertiesOf(device).name; }};
}

DeviceChoice chooseUnasked(const Machine& machine) {
  if (machine.gpus.empty())
    return {.notice = machine.hasDriver ? fmt::format("device: cpu: {}", machine.whyNone) : ""};
  std::string unusable;  // those before
  for (const Device gpu : machine.gpus) {
    const auto why = machine.whyUnusable(gpu);
    if (why.empty())
      return {.devices = {gpu},
              .notice = fmt::format("device: {}, {}{}; --device cpu computes on the CPU instead",
                                    gpu.toString(), machine.nameOf(gpu), unusable),
              .unasked = true};
    unusable += fmt::format("; {} cannot be used: {}", gpu.toString(), why);
  }
  return {.notice = fmt::format("device: cpu{}", unusable)};
}

void requireUsable(const DeviceChoice& choice) {
  if (choice.unasked) return;  // they have been tried
  for (const Device device : choice.devices)
    if (const auto why = device.isCpu() ? std::string() : whyUnusable(device); !why.empty())
      throw muster::DeviceUnavailable(fmt::format("{} cannot be used: {}", device.toString(), why));
}

int runOn(const DeviceChoice& choice, const std::function<int()>& run) {
  if (!choice.unasked) return run();
  try {
    return run();
  } catch (const muster::Error& error) {
    if (!isOfDevice(std::current_exception())) throw;
    throw muster::Error(fmt::format("{}; --device cpu computes on the CPU instead", error.what()));
  }
}

void DeviceOption::describe(boost::program_options::options_description& options, std::string_view who) {
  const auto text = fmt::format(
      "cpu, cuda, cuda:1, or a list as in cuda:0,cuda:1: {} i computes on device i of the list, and beyond "
      "its end from its beginning again. Without a word: {}",
      who, unasked_ == Unasked::Cpu ? "the CPU" : "the first GPU that can be used, else the CPU");
  options.add_options()("device",
                        boost::program_options::value<std::string>()->value_name("LIST")->notifier(
                            [this](const std::string& list) { list_ = list; }),
                        text.c_str());
}

DeviceChoice DeviceOption::choose() const {
  if (!list_) return unasked_ == Unasked::Cpu ? DeviceChoice{} : chooseUnasked(Machine::here());
  const std::string& list = *list_;
  std::vector<Device> devices;
  try {
    devices = Device::parseList(list);
  } catch (const muster::InvalidArgument& error) {
    throw muster::InvalidArgument(fmt::format("--device {}: {}", list, error.what()));
  }
  for (const Device device : devices)
    muster::require(device.isCpu() == devices.front().isCpu(),
                    "--device {}: the CPU and GPUs cannot train together yet; name GPUs alone, or cpu alone",
                    list);
  for (const Device device : devices) requireThere(list, device);
  return {.devices = std::move(devices)};
}

}  // namespace example
