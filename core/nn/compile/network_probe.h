#pragma once

#include "muster/core/nn/compile/network_plan.h"
#include "muster/core/nn/network.h"

namespace muster::detail {

/// The inside of a network, for what reads, exports and measures networks.
struct NetworkProbe {
  /// The plan that `init` would make, without memory. @throws InvalidArgument like `init`.
  static NetworkPlan layOut(const Network& network);
  /// Plan, state and compiled programs (network_impl.h).
  static Network::Impl& of(const Network& network) { return *network.impl_; }
};

}  // namespace muster::detail
