#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/device/context.h"
#include "muster/core/device/device.h"
#include "muster/parallel/runtime/core_claim.h"

namespace muster {

/// Where one worker runs, and how it multiplies there.
struct Placement {
  Device device;
  std::vector<int> cores = {};            ///< to which it is pinned; empty: not pinned
  std::optional<MathMode> mathMode = {};  ///< nothing: the device's default
};

/// What a process may use of the CPU.
struct CpuShare {
  std::vector<int> cores;  ///< by number
  int parallelism = 1;     ///< how many cores' worth of time it gets, at most as many as there are cores

  static CpuShare ofProcess();
};

/// Where all workers of a wrapper compute.
struct Placements {
  std::vector<Placement> workers;  ///< [worker]
  std::string pinning;             ///< in words: "pinned to cores 0, 1", or "not pinned" and why
  /// All workers are on GPUs, and each of them and the reader have a core: a thread that waits for another
  /// may spin.
  bool coresToSpare = false;
  bool ownCores = false;  ///< all workers are on the CPU, each pinned to cores of its own
  CoreClaim claim = {};  ///< the cores of all workers, for as long as this lives
};

/// Worker i runs on device i mod D. If the workers on the CPU need no more cores than there are, each is
/// pinned to cores of its own, as many as its threads. If they need more, none is pinned: the kernel balances
/// better than two workers on one core beside a core that is free. If the process gets less time than they
/// need, none is pinned either: a pinned thread cannot move to a core on which time is left.
/// @param pin  false: no worker is pinned.
Placements placeWorkers(int workers, const std::vector<Device>& devices, int threadsPerWorker, bool pin,
                        const CpuShare& share);

/// The same within the share of this process. Leaves out cores to which other workers are pinned, and claims
/// its own; pins no worker if the others leave too few.
Placements placeAndClaim(int workers, const std::vector<Device>& devices, int threadsPerWorker, bool pin,
                         std::optional<MathMode> mathMode);

/// Whether `device`, which is available, has this math mode. Every device has its default.
bool hasMathMode(Device device, std::optional<MathMode> mode);

/// The plan in words, as in "2 workers on cpu (1 thread each, not pinned, products in bf16)"; the last where
/// a math mode was given. @param more  after that, within the brackets.
std::string describe(const Placements& placements, int threadsPerWorker, std::string_view more = {});

}  // namespace muster
