#include "muster/parallel/runtime/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/device/math_mode.h"

namespace muster {
namespace {

/// Why this many threads should not be pinned; "" if they may be.
std::string reasonNotToPin(std::size_t threads, const CpuShare& share) {
  if (threads > share.cores.size())
    return fmt::format("{} threads for {} core{}", threads, share.cores.size(),
                       share.cores.size() == 1 ? "" : "s");
  if (threads > static_cast<std::size_t>(share.parallelism))
    return fmt::format("{} threads, but the CPU quota allows {} core{}", threads, share.parallelism,
                       share.parallelism == 1 ? "" : "s");
  return {};
}

/// Gives each worker on the CPU `threads` cores. @return all cores given.
std::vector<int> handOut(const std::vector<int>& cores, int threads, std::vector<Placement>& workers) {
  auto next = cores.begin();
  for (auto& worker : workers) {
    if (!worker.device.isCpu()) continue;
    worker.cores.assign(next, next + threads);
    next += threads;
  }
  return {cores.begin(), next};
}

}  // namespace

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
  placements.noCoreForReader =
      threads == static_cast<std::size_t>(workers) * threadsPerWorker && threads >= share.cores.size();
  if (!pin || threads == 0) return placements;
  if (const auto reason = reasonNotToPin(threads, share); !reason.empty()) {
    placements.pinning += ": " + reason;
    return placements;
  }
  const auto taken = handOut(share.cores, threadsPerWorker, placements.workers);
  placements.pinning =
      fmt::format("pinned to core{} {}", taken.size() > 1 ? "s" : "", fmt::join(taken, ", "));
  placements.ownCores = std::ranges::all_of(placements.workers, [](auto& w) { return w.device.isCpu(); });
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
      placements.pinning =
          fmt::format("not pinned: {} thread{}, but other pinned threads have most of {} core{}", pinned,
                      pinned == 1 ? "" : "s", share.cores.size(), share.cores.size() == 1 ? "" : "s");
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
