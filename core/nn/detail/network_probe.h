#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/core/nn/network.h"

namespace muster::detail {

/// How a network runs inside. For tests; programs have no use for it.
struct NetworkProbe {
  /// Sets whether steps are enqueued, recorded and launched as a whole. Default: on a GPU. On the CPU that
  /// gives the same bits by a longer path, which is how it is tested without a GPU. Waits for steps in
  /// flight.
  /// @throws InvalidArgument for false on a GPU.
  static void setEnqueuedSteps(Network& network, bool enqueued);
  /// Number of steps that the compiled programs have launched from a recording.
  static std::int64_t launchedSteps(const Network& network);
  /// Bytes of the activations and gradients of all compiled programs.
  static std::size_t activationBytes(const Network& network);
};

}  // namespace muster::detail
