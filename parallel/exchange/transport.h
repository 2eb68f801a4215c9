#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/fields.h"
#include "muster/core/tensor/device_copies.h"

namespace muster {

/// How numbers get from one GPU's memory to another's. A transport only copies, so results do not depend on
/// it.
enum class Route {
  Nccl,   ///< by NCCL, over any links between the GPUs
  Peers,  ///< by copies from GPU to GPU
  Host    ///< through page-locked memory of the CPU
};

template <>
struct EnumNames<Route> {
  static constexpr std::array<std::pair<Route, std::string_view>, 3> kNames{{
      {Route::Nccl, "NCCL"},
      {Route::Peers, "peer copies"},
      {Route::Host, "the host"},
  }};
};

/// @param devices  each once.
Links linksBetween(std::span<const Device> devices);

/// NCCL if it is available, else peer copies if all devices have them, else the host.
Route bestRoute(const Links& links);

/// Moves bytes between devices; computes nothing.
struct Transport {
  Route route = Route::Host;
  std::unique_ptr<DeviceCopies> copies;
};

/// @param contexts  [device] one on each, on whose compute streams the copies are enqueued; they outlive the
///                  transport. Contexts on the CPU, where every route copies memory, are for tests.
/// @param stagingBytes  for Route::Host, the most that one device sends to another in one call.
/// @param failing  for tests: this route fails, as NCCL and peer copies between GPUs may.
/// Tests the route between GPUs: if it fails (NCCL finds too little shared memory, a peer copy is refused), a
/// warning says so and the next route is taken.
/// @throws DeviceUnavailable for NCCL if it is not available, DeviceFailure if no route works.
Transport makeTransport(Route route, const std::vector<Context*>& contexts, std::size_t stagingBytes,
                        std::optional<Route> failing = {});

}  // namespace muster
