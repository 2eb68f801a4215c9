#include "muster/core/device/device.h"

#include <sched.h>

#include <algorithm>
#include <charconv>

#include "muster/built.h"
#include "muster/core/base/comma_list.h"
#include "muster/core/base/error.h"
#include "muster/core/device/detail/control_group.h"
#include "muster/core/device/detail/cuda.h"

namespace muster {

Device Device::parse(std::string_view text) {
  if (text == "cpu") return cpu();
  if (text == "cuda") return cuda(0);
  constexpr std::string_view prefix = "cuda:";
  if (text.starts_with(prefix)) {
    const auto digits = text.substr(prefix.size());
    int index = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error == std::errc() && end == digits.data() + digits.size() && index >= 0) return cuda(index);
  }
  throw InvalidArgument(fmt::format("device: expected cpu, cuda or cuda:N, got \"{}\"", text));
}

std::vector<Device> Device::parseList(std::string_view text) {
  std::vector<Device> devices;
  for (const auto name : commaList(text)) {
    const Device device = parse(name);
    require(std::ranges::find(devices, device) == devices.end(), "device: {} is named twice in \"{}\"",
            device.toString(), text);
    devices.push_back(device);
  }
  return devices;
}

bool cudaBuilt() {
  return kCudaBuilt;
}

std::vector<Device> availableDevices() {
  std::vector<Device> devices{Device::cpu()};
  if constexpr (kCudaBuilt)
    for (int index = 0; index < cuda::deviceCount().count; ++index) devices.push_back(Device::cuda(index));
  return devices;
}

std::string whyNoCuda() {
  if constexpr (kCudaBuilt) return cuda::deviceCount().whyNone;
  return fmt::format("this build has no CUDA ({})", kWhyNoCuda);
}

Device defaultDevice() {
  const auto devices = availableDevices();
  return devices.size() > 1 ? devices[1] : devices[0];
}

DeviceProperties propertiesOf(Device device) {
  if (device.isCpu()) return {.name = "cpu"};
  if constexpr (kCudaBuilt) return cuda::propertiesOf(device);
  throw DeviceUnavailable(fmt::format("{} is not available, this build has no CUDA", device.toString()));
}

std::size_t freeMemoryOf(Device device) {
  if (device.isCpu()) return 0;
  if constexpr (kCudaBuilt) return cuda::freeMemoryOf(device);
  throw DeviceUnavailable(fmt::format("{} is not available, this build has no CUDA", device.toString()));
}

std::string Device::toString() const {
  return isCpu() ? "cpu" : fmt::format("cuda:{}", index_);
}

std::vector<int> availableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) cores.push_back(core);
  if (cores.empty()) cores.push_back(0);
  return cores;
}

int availableParallelism() {
  const int cores = static_cast<int>(availableCores().size());
  const auto quota = detail::cpuQuota();
  return quota ? std::clamp(static_cast<int>(*quota), 1, cores) : cores;
}

}  // namespace muster
