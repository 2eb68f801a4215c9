#pragma once

#include <span>

namespace muster {

/// The workers that train replicas of one model together, for one of them. A layer whose result depends on
/// all workers' batches gets this object from the Context; other layers cost nothing.
class Peers {
 public:
  virtual ~Peers() = default;
  /// Replaces `values` by their sums over all workers in the same step, added in worker order: the same bits
  /// for all. Waits for them; every worker in the step makes the same calls with equally many values.
  /// Allocates nothing.
  /// @throws Error if another worker fails meanwhile, or passes another number of values.
  virtual void sum(std::span<double> values) = 0;
};

}  // namespace muster
