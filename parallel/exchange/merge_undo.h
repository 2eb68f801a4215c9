#pragma once

#include <span>
#include <string>
#include <vector>

#include "muster/core/tensor/tensor.h"

namespace muster {

class Exchange;

/// Undoes a merge that has failed: copies what a merge overwrites before it begins, and restores it. These
/// are the merged copies, and the strategy's other saved blocks except those in flight; on several devices
/// those of the first. Made by Exchange::makeUndo. This class is for merges in host memory.
class MergeUndo {
 public:
  struct Options {
    bool everyMerge = false;  ///< copy before every merge; else on demand (`keepAll`)
    /// A merge writes all state. False if local work is a gradient: a merge writes the statistics alone.
    bool allState = true;
    bool mayOverflow = false;  ///< a merge of finite numbers may give others (StrategyTraits::extrapolates)
  };
  struct Copy {
    std::string name;
    const Tensor* live;  // a member of the exchange, which may change the tensor
    Tensor kept;
  };
  /// @param exchange  with the strategy's blocks; must outlive the object. Allocates only with `everyMerge`.
  MergeUndo(Exchange& exchange, const Options& options);
  virtual ~MergeUndo() = default;
  bool everyMerge() const { return options_.everyMerge; }
  /// Empty until something was kept.
  std::span<const Copy> copies() const { return copies_; }

  /// With `everyMerge`: copies the participant's part of what the next merge may overwrite. Call it while no
  /// operation runs.
  /// @throws NonFiniteScore if the merge before was checked and has written numbers that are not finite.
  virtual void keep(int participant);
  /// Copies every participant's part. Requires Topology::onePlace. Without `everyMerge` the first call
  /// allocates. @throws as `keep`.
  virtual void keepAll();
  /// Whether the last merge is known to have written numbers that are not finite. Call it after
  /// Exchange::wait.
  virtual bool failed() const { return false; }
  /// Restores what was kept before a merge that has failed. Call it while no participant works.
  /// @return false if that is not possible.
  virtual bool rollBack();

 protected:
  const Options options_;
  std::vector<Copy> copies_;

 private:
  void makeCopies(bool statisticsAlone);
  void keepPart(int part, int parts);

  Exchange& exchange_;
  bool made_ = false;
};

}  // namespace muster
