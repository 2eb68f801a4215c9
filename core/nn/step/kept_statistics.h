#pragma once

#include <span>
#include <vector>

#include "muster/core/optim/state_block.h"

namespace muster::detail {

/// A copy of a model's statistics from before a step. Allocates at the first step only, and nothing for a
/// model without statistics. One thread at a time.
class KeptStatistics {
 public:
  /// Copies the statistics among the model's blocks.
  void keep(std::span<StateBlock> blocks, Context& context);
  /// Writes the copy back. Logs a failure of the device.
  void restore(std::span<StateBlock> blocks, Context& context) noexcept;

 private:
  std::vector<Tensor> kept_;  // [block] undefined for blocks of other kinds
};

}  // namespace muster::detail
