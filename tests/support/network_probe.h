#pragma once

#include <cstddef>

#include "muster/core/base/error.h"
#include "muster/core/nn/compile/network_probe.h"
#include "muster/core/nn/step/network_impl.h"

namespace muster::test {

/// Sets whether steps are enqueued, recorded and launched; by default only on a GPU. The CPU gives the same
/// bits either way, so tests need no GPU. Waits for steps in flight.
/// @throws InvalidArgument for false on a GPU.
inline void setEnqueuedSteps(Network& network, bool enqueued) {
  require(enqueued || network.context().device().isCpu(), "network: on {} steps are always enqueued",
          network.context().device().toString());
  auto& inside = detail::NetworkProbe::of(network);
  inside.programs.finish();
  inside.enqueuesSteps = enqueued;
}

/// Number of steps of the compiled programs, by how they ran.
inline detail::StepCounts stepCounts(const Network& network) {
  return detail::NetworkProbe::of(network).programs.counts();
}

/// Bytes of the activations and gradients of all compiled programs.
inline std::size_t activationBytes(const Network& network) {
  return detail::NetworkProbe::of(network).programs.bytes();
}

}  // namespace muster::test
