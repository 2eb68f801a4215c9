#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/core/nn/detail/network_plan.h"
#include "muster/core/nn/detail/step_runner.h"
#include "muster/core/nn/network.h"

namespace muster::detail {

/// The inner state of a network, for tests and for reading files.
struct NetworkProbe {
  /// The plan that `init` would make, without memory. @throws InvalidArgument like `init`.
  static NetworkPlan layOut(const Network& network);
  static const NetworkPlan& planOf(const Network& network);
  /// Sets whether steps are enqueued, recorded and launched; by default only on a GPU. The CPU gives the same
  /// bits either way, so tests need no GPU. Waits for steps in flight.
  /// @throws InvalidArgument for false on a GPU.
  static void setEnqueuedSteps(Network& network, bool enqueued);
  /// Number of steps of the compiled programs, by how they ran.
  static StepCounts stepCounts(const Network& network);
  /// Bytes of the activations and gradients of all compiled programs.
  static std::size_t activationBytes(const Network& network);
};

}  // namespace muster::detail
