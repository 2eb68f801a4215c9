#pragma once

#include "muster/parallel/exchange/merge_backup.h"

namespace muster {

class Exchange;

/// Undoes a merge that has failed: copies what a merge may overwrite before it begins, and restores it. Made
/// by Exchange::makeUndo.
class MergeUndo {
 public:
  /// What has to be undone.
  struct Options {
    bool everyMerge = false;  ///< copy before every merge; else on demand (`keepAll`)
    /// A merge writes all state. False if local work is a gradient: a merge writes the statistics alone.
    bool allState = true;
    bool mayOverflow = false;  ///< a merge of finite numbers may give others (StrategyTraits::extrapolates)
  };
  virtual ~MergeUndo() = default;
  /// Whether workers call `keep` before every merge.
  bool everyMerge() const { return everyMerge_; }
  /// With `everyMerge`: copies the participant's part of what the next merge may overwrite. Call it while no
  /// operation runs.
  /// @throws NonFiniteScore if the merge before was checked and has written numbers that are not finite.
  virtual void keep(int participant) = 0;
  /// Copies every participant's part. Requires Topology::onePlace. Without `everyMerge` the first call
  /// allocates. @throws as `keep`.
  virtual void keepAll() = 0;
  /// Whether the last merge is known to have written numbers that are not finite. Call it after
  /// Exchange::wait.
  virtual bool failed() const { return false; }
  /// After a merge that has failed: restores the merged copies, and the strategy's other blocks, to
  /// what was kept before it. Call it while no participant works. @return false if that is not possible.
  virtual bool rollBack() = 0;

 protected:
  explicit MergeUndo(bool everyMerge) : everyMerge_(everyMerge) {}

 private:
  const bool everyMerge_;
};

/// For merges in host memory, of one node or of several.
class HostUndo final : public MergeUndo {
 public:
  /// @param exchange  with the strategy's blocks; must outlive the object. Allocates only with `everyMerge`.
  HostUndo(Exchange& exchange, const Options& options);
  void keep(int participant) override;
  void keepAll() override;
  bool rollBack() override;

 private:
  Exchange& exchange_;
  MergeBackup backup_;
};

}  // namespace muster
