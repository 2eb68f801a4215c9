#pragma once

#include <span>
#include <vector>

#include "muster/core/nn/model.h"

namespace muster {

/// Gives a replica another state for as long as this object lives, and then its own again, every bit.
/// Gradients are not kept: they are always written before they are read.
class StateLoan {
 public:
  /// @param values  [block] in the order of `replica.state()`.
  StateLoan(Model& replica, std::span<const Tensor> values);
  /// Gives the replica its own state back. Allocates nothing. If the device fails, that is logged.
  ~StateLoan();
  StateLoan(const StateLoan&) = delete;
  StateLoan& operator=(const StateLoan&) = delete;

 private:
  explicit StateLoan(Model& replica);

  struct Block {
    Tensor values;  // the replica's
    Tensor own;     // what they were; undefined for gradients
  };
  Context& context_;
  std::vector<Block> blocks_;
};

}  // namespace muster
