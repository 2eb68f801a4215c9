#pragma once

#include <memory>
#include <vector>

#include "muster/parallel/strategies/strategy.h"

namespace muster {

/// Every iteration the gradients become their weighted mean over the workers, and every replica applies the
/// same update to the same parameters, so these stay equal, bit for bit. Statistics are merged by their own
/// rule. W workers on batches of B train as one worker on batches of W B, to rounding, whatever the updater,
/// regularisation and clipping. Source: Goyal et al. 2017 (synchronous minibatch SGD).
struct SynchronousGradients {
  void validate() const {}
  std::unique_ptr<Strategy> make() const;
  void fields(Fields&) {}
  static std::vector<NamedStrategy> named(int workers);
};

}  // namespace muster
