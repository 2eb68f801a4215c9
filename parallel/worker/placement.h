#pragma once

#include <string>
#include <vector>

#include "muster/core/device/device.h"

namespace muster {

/// Where one worker runs.
struct Placement {
  Device device;
  std::vector<int> cores;  ///< to which it is pinned; empty: not pinned
};

/// Worker i runs on device i mod D. Where the workers on the CPU need no more cores than there are, worker i
/// is pinned to cores of its own, as many as its threads; where they need more, none is pinned, since two
/// workers on one core while another is free would be worse than what the kernel does.
///
/// @param cores  those the process may use.  @param pin  false: nobody is pinned.
std::vector<Placement> placeWorkers(int workers, const std::vector<Device>& devices, int threadsPerWorker,
                                    bool pin, const std::vector<int>& cores);

/// The plan in words, as in "2 workers on cpu (1 thread each, pinned to cores 0 and 1)".
std::string describe(const std::vector<Placement>& placements, int threadsPerWorker);

}  // namespace muster
