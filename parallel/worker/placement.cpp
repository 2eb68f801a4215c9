#include "muster/parallel/worker/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace muster {

std::vector<Placement> placeWorkers(int workers, const std::vector<Device>& devices, int threadsPerWorker,
                                    bool pin, const std::vector<int>& cores) {
  std::vector<Placement> placements(workers);
  std::size_t onCpu = 0;
  for (int i = 0; i < workers; ++i) {
    placements[i].device = devices[i % devices.size()];
    onCpu += placements[i].device.isCpu() ? 1 : 0;
  }
  const auto threads = static_cast<std::size_t>(threadsPerWorker);
  if (!pin || onCpu * threads > cores.size()) return placements;
  auto next = cores.begin();
  for (auto& placement : placements) {
    if (!placement.device.isCpu()) continue;
    placement.cores.assign(next, next + threadsPerWorker);
    next += threadsPerWorker;
  }
  return placements;
}

std::string describe(const std::vector<Placement>& placements, int threadsPerWorker) {
  std::set<std::string> devices;
  std::vector<int> cores;
  for (const auto& placement : placements) {
    devices.insert(placement.device.toString());
    cores.insert(cores.end(), placement.cores.begin(), placement.cores.end());
  }
  const auto plural = [](std::size_t n, std::string_view one) {
    return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s");
  };
  auto text = fmt::format("{} on {} ({}{}", plural(placements.size(), "worker"), fmt::join(devices, ", "),
                          plural(static_cast<std::size_t>(threadsPerWorker), "thread"),
                          placements.size() > 1 ? " each" : "");
  text += cores.empty()
              ? ", not pinned)"
              : fmt::format(", pinned to core{} {})", cores.size() > 1 ? "s" : "", fmt::join(cores, ", "));
  return text;
}

}  // namespace muster
