#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/fields.h"
#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// How numbers get from one GPU's memory to another's. Bits do not depend on it: an exchange only copies.
enum class Route {
  Nccl,   ///< by NCCL, over whatever links the GPUs
  Peers,  ///< by copies from GPU to GPU
  Host    ///< by way of page-locked memory of the CPU
};

template <>
struct EnumNames<Route> {
  static constexpr std::array<std::pair<Route, std::string_view>, 3> kNames{{
      {Route::Nccl, "NCCL"},
      {Route::Peers, "peer copies"},
      {Route::Host, "the host"},
  }};
};

/// What some devices have between them.
struct Links {
  std::string whyNoNccl;  ///< "" where NCCL can be used
  bool peers = false;     ///< every one of them copies to every other directly
};

/// @param devices  each once.
Links linksBetween(std::span<const Device> devices);

/// NCCL where it is found, else peer copies where all devices have them, else the host.
Route bestRoute(const Links& links);

/// A copy from device `from` to device `to`, as they are numbered in an exchange.
struct Transfer {
  int from = 0, to = 0;
  Tensor source, target;  // alike in shape, element type and layout
};

/// Copies between devices, enqueued by one thread for all of them: one coordinator, so that no two devices
/// can wait for each other's next call.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual Route route() const = 0;
  /// Enqueues copies that go on side by side, no two to the same memory, none from a device to itself. On
  /// the compute stream of either device a copy comes after all that was enqueued before, and before all
  /// that is enqueued behind this call. Does not wait for the copies. Allocates nothing.
  /// @throws DeviceFailure, also where `abort` was called.
  virtual void run(std::span<const Transfer> transfers) = 0;
  /// Ends what is under way, so that nobody waits for a device that has failed. Every later `run` throws.
  /// Thread-safe.
  virtual void abort() noexcept {}
};

/// @param contexts  [device] one on each, on whose compute streams the copies are enqueued; they outlive the
///                  exchange. Contexts on the CPU, on which everything is a copy in memory, are for tests.
/// @param stagingBytes  by Route::Host, the most that one device sends to another in one call.
/// GPUs are tried out: where they cannot exchange by this route (NCCL finds too little shared memory, a peer
/// refuses), a warning says so, and it is the next one: `route()` tells which it became.
/// @throws DeviceUnavailable for NCCL where it is not to be had, DeviceFailure where no route works.
std::unique_ptr<Exchange> makeExchange(Route route, std::vector<Context*> contexts, std::size_t stagingBytes);

namespace detail {
/// For tests: from now on this route does not work, between contexts on the CPU either, as NCCL and peer
/// copies between GPUs may not. Nothing, as at the start: every route works that is there.
void pretendFailure(std::optional<Route> route);
}  // namespace detail

namespace cuda {
std::string whyNoNccl();
Links linksBetween(std::span<const Device> devices);
/// Lets every two of them copy directly.
void enablePeers(std::span<Context* const> contexts);
std::unique_ptr<Exchange> makeNcclExchange(std::vector<Context*> contexts);
}  // namespace cuda

}  // namespace muster
