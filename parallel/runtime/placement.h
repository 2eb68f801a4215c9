#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/device/context.h"
#include "muster/core/device/core_claim.h"
#include "muster/core/device/device.h"

namespace muster {

/// Where one worker runs, and in which math mode.
struct Placement {
  Device device;
  std::vector<int> cores = {};            ///< to which the worker is pinned; empty: not pinned
  std::optional<MathMode> mathMode = {};  ///< nothing: the device's default
};

/// The share of the CPU that a process may use.
struct CpuShare {
  std::vector<int> cores;  ///< by number
  int parallelism = 1;     ///< how many cores' worth of time the process gets, at most the number of cores

  static CpuShare ofProcess();
};

/// Where all workers of a wrapper compute.
struct Placements {
  std::vector<Placement> workers;  ///< [worker]
  std::string pinning;             ///< as text: "pinned to cores 0, 1", or "not pinned" and why
  /// All workers are on GPUs, and each worker and the reader has a core: a waiting thread may spin.
  bool coresToSpare = false;
  bool ownCores = false;  ///< all workers are on the CPU, each pinned to cores of its own
  /// All workers are on the CPU and leave no core for a reader, which would interrupt one of them while the
  /// others wait for it.
  bool noCoreForReader = false;
  CoreClaim claim = {};  ///< the cores of all workers, held while this object lives
};

/// Worker i runs on device i mod D. If there are enough cores for the workers on the CPU, each is pinned to
/// cores of its own, as many as its threads. Otherwise none is pinned: the kernel balances better than a
/// pinning with two workers on one core and another core idle. If the process's CPU quota is too small, none
/// is pinned either: a pinned thread cannot move to a core that has time left.
/// @param pin  false: no worker is pinned.
Placements placeWorkers(int workers, const std::vector<Device>& devices, int threadsPerWorker, bool pin,
                        const CpuShare& share);

/// Calls placeWorkers for the cores of this process. Leaves out cores to which other workers are pinned, and
/// claims the cores used; pins no worker if the others leave too few.
Placements placeAndClaim(int workers, const std::vector<Device>& devices, int threadsPerWorker, bool pin,
                         std::optional<MathMode> mathMode);

/// @throws InvalidArgument unless `device`, which must be available, has this math mode. Nothing: its
/// default.
/// @param whose  begins the message: "", or as in "data parallel: ".
void requireMathMode(Device device, std::optional<MathMode> mode, std::string_view whose = {});

/// The plan as text, as in "2 workers on cpu (1 thread each, not pinned, products in bf16)"; "products ..."
/// only if a math mode was given. @param more  appended within the brackets.
std::string describe(const Placements& placements, int threadsPerWorker, std::string_view more = {});

}  // namespace muster
