#include "muster/parallel/runtime/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "muster/core/base/plural.h"
#include "muster/core/device/math_mode.h"

namespace muster {

CpuShare CpuShare::ofProcess() {
  return {availableCores(), availableParallelism()};
}

Placements placeWorkers(int workers, const std::vector<Device>& devices, int threadsPerWorker, bool pin,
                        const CpuShare& share) {
  Placements placements{.workers = std::vector<Placement>(workers), .pinning = "not pinned"};
  std::size_t threads = 0;  // on the CPU
  for (int i = 0; i < workers; ++i) {
    placements.workers[i].device = devices[i % devices.size()];
    if (placements.workers[i].device.isCpu()) threads += threadsPerWorker;
  }
  placements.coresToSpare = threads == 0 && workers < share.parallelism;
  const bool allOnCpu = threads == static_cast<std::size_t>(workers) * threadsPerWorker;
  placements.noCoreForReader = allOnCpu && threads >= share.cores.size();
  if (!pin || threads == 0) return placements;
  if (threads > share.cores.size()) {
    placements.pinning += fmt::format(": {} threads for {}", threads, plural(share.cores.size(), "core"));
  } else if (threads > static_cast<std::size_t>(share.parallelism)) {
    placements.pinning +=
        fmt::format(": {} threads, but the CPU quota allows {}", threads, plural(share.parallelism, "core"));
  } else {
    auto next = share.cores.begin();
    for (auto& worker : placements.workers) {
      if (!worker.device.isCpu()) continue;
      worker.cores.assign(next, next + threadsPerWorker);
      next += threadsPerWorker;
    }
    placements.pinning = fmt::format("pinned to core{} {}", threads > 1 ? "s" : "",
                                     fmt::join(share.cores.begin(), next, ", "));
    placements.ownCores = allOnCpu;
  }
  return placements;
}

Placements placeAndClaim(int workers, const std::vector<Device>& devices, int threadsPerWorker, bool pin,
                         std::optional<MathMode> mathMode) {
  auto share = CpuShare::ofProcess();
  auto placements = placeWorkers(workers, devices, threadsPerWorker, pin, share);
  std::size_t pinned = 0;
  for (const auto& worker : placements.workers) pinned += worker.cores.size();
  if (pinned > 0) {
    CoreClaim claim(share.cores, pinned);
    const bool free = !claim.cores().empty();
    if (free) share.cores = claim.cores();
    const bool noCoreForReader = placements.noCoreForReader;
    placements = placeWorkers(workers, devices, threadsPerWorker, free, share);
    placements.noCoreForReader = noCoreForReader;  // `share` has no more cores now than the workers need
    if (!free)
      placements.pinning = fmt::format("not pinned: {}, but other pinned threads have most of {}",
                                       plural(pinned, "thread"), plural(share.cores.size(), "core"));
    placements.claim = std::move(claim);
  }
  for (auto& worker : placements.workers) worker.mathMode = mathMode;
  return placements;
}

void requireMathMode(Device device, std::optional<MathMode> mode, std::string_view whose) {
  if (const auto why = mode ? whyNoMathMode(device, *mode) : std::string(); !why.empty())
    throw InvalidArgument(
        fmt::format("{}mathMode: {} has no {}: {}", whose, device.toString(), nameOf(*mode), why));
}

std::string describe(const Placements& placements, int threadsPerWorker, std::string_view more) {
  std::set<std::string> devices;
  for (const auto& worker : placements.workers) devices.insert(worker.device.toString());
  const auto count = placements.workers.size();
  const auto mode = placements.workers.front().mathMode;
  return fmt::format("{} on {} ({}{}, {}{}{})", plural(count, "worker"), fmt::join(devices, ", "),
                     plural(threadsPerWorker, "thread"), count > 1 ? " each" : "", placements.pinning,
                     mode ? fmt::format(", products in {}", nameOf(*mode)) : "", more);
}

}  // namespace muster
