#pragma once

#include <span>
#include <string>
#include <vector>

#include "muster/core/nn/model.h"

namespace muster {

/// Gives a replica another state while this object lives, and then its own state again, bit for bit. On the
/// CPU a block that already equals the lent block is not saved, so after a merge this takes no memory. Such
/// a block is restored from the lent block, in case the model's output() writes its state.
/// Gradients are not saved: they are always written before they are read.
class StateLoan {
 public:
  /// @param values  [block] in the order of `replica.state()`; they must not change meanwhile.
  /// @param root  see requireMemoryRoom.
  /// @throws OutOfMemory if the process's memory limit leaves no room for the replica's own state.
  StateLoan(Model& replica, std::span<const Tensor> values, const std::string& root);
  /// Gives the replica its own state back. Allocates nothing. Logs a failure of the device.
  ~StateLoan();
  StateLoan(const StateLoan&) = delete;
  StateLoan& operator=(const StateLoan&) = delete;

 private:
  /// A block that may change meanwhile.
  struct Block {
    Tensor values;  // the replica's block
    Tensor own;     // its own values; `lent` if they were equal
    Tensor lent;    // the values lent to it
  };
  StateLoan(Context& context, std::vector<Block> blocks);
  static std::vector<Block> keep(Model& replica, std::span<const Tensor> values, const std::string& root);

  Context& context_;
  std::vector<Block> blocks_;
};

}  // namespace muster
