#pragma once

#include <vector>

#include "muster/core/tensor/tensor.h"

namespace muster {

class Exchange;

/// Copies of what a merge overwrites, in host memory: the merged copies, and the strategy's blocks beside
/// them except those in flight. A merge that has failed is undone by them.
class MergeBackup {
 public:
  /// Allocates the copies. @param statisticsAlone  without parameters and the updater's state.
  void make(const Exchange& exchange, bool statisticsAlone = false);
  bool made() const { return made_; }
  /// Copies one of `parts` parts of each block. Thread-safe for different parts. Allocates nothing.
  void keep(int part, int parts);
  /// Writes the copies back.
  void restore() const;

 private:
  struct Copy {
    Tensor live, kept;
  };
  std::vector<Copy> copies_;
  bool made_ = false;
};

}  // namespace muster
