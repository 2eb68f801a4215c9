#pragma once

#include <span>
#include <string>
#include <vector>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

class Exchange;

/// Copies of what a merge overwrites, in the same memory or on the same device: the merged copies, and the
/// strategy's other saved blocks except those in flight; on several devices those of the first. A merge
/// that has failed is undone by them.
class MergeBackup {
 public:
  /// A block that is kept.
  struct Copy {
    std::string name;
    const Tensor* live;  // a member of the exchange, which may change the tensor
    Tensor kept;
  };
  /// Allocates the copies. @param statisticsAlone  without parameters and the updater's state.
  void make(const Exchange& exchange, bool statisticsAlone = false);
  bool made() const { return made_; }
  std::span<const Copy> copies() const { return copies_; }

  // In host memory:

  /// Copies one of `parts` parts of each block. Thread-safe for different parts. Allocates nothing.
  void keep(int part, int parts);
  /// Writes the copies back.
  void restore() const;

  // On the context's device; enqueued there:

  void keep(Context& context);
  void restore(Context& context) const;

 private:
  std::vector<Copy> copies_;
  bool made_ = false;
};

}  // namespace muster
