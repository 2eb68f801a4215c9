#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/core/device/context.h"
#include "muster/core/device/device.h"

namespace muster {

/// Where one worker runs, and how it multiplies there.
struct Placement {
  Device device;
  std::vector<int> cores = {};            ///< to which it is pinned; empty: not pinned
  std::optional<MathMode> mathMode = {};  ///< nothing: the device's own
};

/// What a process may use of the CPU.
struct CpuShare {
  std::vector<int> cores;  ///< by number
  int parallelism = 1;     ///< how many cores' worth of time it gets, at most as many as there are cores

  /// This process's.
  static CpuShare ofProcess();
};

struct Placements {
  std::vector<Placement> workers;  ///< [worker]
  std::string pinning;             ///< in words: "pinned to cores 0, 1", or "not pinned" and why
  /// Workers on GPUs that have a core each, and the reader one: who waits for others may look for them.
  bool coresToSpare = false;
};

/// Worker i runs on device i mod D. Where the workers on the CPU need no more cores than there are, worker i
/// is pinned to cores of its own, as many as its threads. Where they need more, none is pinned, since two
/// workers on one core while another is free would be worse than what the kernel does; nor where the process
/// gets less time than they need, since a pinned thread cannot move to a core on which time is left.
/// @param pin  false: nobody is pinned.
Placements placeWorkers(int workers, const std::vector<Device>& devices, int threadsPerWorker, bool pin,
                        const CpuShare& share);

/// Whether `device`, which is there, multiplies so; without a mode it does in its own way.
bool hasMathMode(Device device, std::optional<MathMode> mode);

/// The plan in words, as in "2 workers on cpu (1 thread each, pinned to cores 0, 1)".
std::string describe(const Placements& placements, int threadsPerWorker);

}  // namespace muster
