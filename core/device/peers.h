#pragma once

#include <span>

namespace muster {

/// The workers that train replicas of one model side by side, as one of them sees it. A layer whose result
/// depends on the batches of all of them asks for it in the Context; it costs nothing where none does.
class Peers {
 public:
  virtual ~Peers() = default;
  /// Replaces `values` by their sums over all workers that are in the same step, added in worker order: the
  /// same bits for all. Waits for them; every worker in the step makes the same calls with as many values.
  /// Allocates nothing.
  /// @throws Error where another worker fails meanwhile, or comes with another number of values.
  virtual void sum(std::span<double> values) = 0;
};

}  // namespace muster
