#pragma once

#include <cstddef>
#include <span>

namespace muster::cpu {

/// The contributing replicas and their shares.
struct Contributors {
  explicit Contributors(std::span<const double> replicaWeights) : weights(replicaWeights) {
    for (std::size_t replica = 0; replica < weights.size(); ++replica) {
      if (weights[replica] == 0) continue;
      if (count++ == 0) first = replica;
      last = replica;
      total += weights[replica];
    }
  }
  double share(std::size_t replica) const { return weights[replica] / total; }

  std::span<const double> weights;  // [replica]
  std::size_t first = 0, last = 0, count = 0;
  double total = 0;
};

}  // namespace muster::cpu
