#include "muster/core/listeners/watch/machine_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "muster/core/base/byte_text.h"
#include "muster/core/device/device.h"
#include "muster/core/device/instructions.h"
#include "muster/core/device/memory_room.h"

namespace muster {
namespace {

std::int64_t memoryBytes() {
  const auto all = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  const auto room = memoryRoom();
  return room ? std::min(all, room->limit) : all;
}

}  // namespace

std::string processorName() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "a processor without a name";
}

std::string machineText() {
  const int cores = availableParallelism();
  const auto instructions = vectorInstructions();
  auto text = fmt::format("{}, {} core{}{}{}\n{} of memory\n", processorName(), cores, cores == 1 ? "" : "s",
                          instructions.empty() ? "" : ", ", instructions,
                          byteText(static_cast<double>(memoryBytes())));
  for (const auto device : availableDevices())
    if (!device.isCpu()) {
      const auto gpu = propertiesOf(device);
      text += fmt::format("{}: {}, {} of memory\n", device.toString(), gpu.name,
                          byteText(static_cast<double>(gpu.memoryBytes)));
    }
  return text;
}

}  // namespace muster
