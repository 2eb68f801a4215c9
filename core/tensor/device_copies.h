#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// A copy from device `from` to device `to`; both number the contexts that a DeviceCopies was made with.
struct Transfer {
  int from = 0, to = 0;
  Tensor source, target;  // alike in shape, element type and layout
};

/// Copies between devices, enqueued by one thread for all of them: one coordinator, so that no two devices
/// can wait for each other's next call.
class DeviceCopies {
 public:
  virtual ~DeviceCopies() = default;
  /// Enqueues copies that run side by side, no two to the same memory, none from a device to itself. On the
  /// compute stream of either device a copy runs after all work enqueued before this call, and before all
  /// work enqueued after it. Does not wait for the copies. Allocates nothing.
  /// @throws DeviceFailure, also after `abort`.
  virtual void run(std::span<const Transfer> transfers) = 0;
  /// Ends copies in progress, so that no device waits for one that has failed. Every later `run` throws.
  /// Thread-safe.
  virtual void abort() noexcept {}
};

/// How devices are connected.
struct Links {
  std::string whyNoNccl;  ///< "" if NCCL is available
  bool peers = false;     ///< every device copies to every other directly
};

namespace cuda {
/// Why NCCL is not available; "" if it is.
std::string whyNoNccl();
/// @param devices  each once.
Links linksBetween(std::span<const Device> devices);
/// Enables direct copies between every two of them.
void enablePeers(std::span<Context* const> contexts);
/// @param contexts  [device] one on each; they outlive the result.
/// @throws DeviceUnavailable without NCCL, DeviceFailure if its communicators do not connect.
std::unique_ptr<DeviceCopies> makeNcclCopies(std::vector<Context*> contexts);
}  // namespace cuda

}  // namespace muster
