#pragma once

#include <atomic>

#include "muster/core/device/context.h"
#include "muster/parallel/exchange/merge_undo.h"

namespace muster {

/// How far a DeviceExchange is with its merges.
struct MergeStatus {
  std::atomic<bool> whole{true};     // false between `begin` and `end`
  std::atomic<bool> broken{false};   // a transfer to the first device was aborted
  std::atomic<bool> aborted{false};  // since the last restart
};

/// Undoes merges of a DeviceExchange: the first participant enqueues the copies, on the first device, from
/// which the user's model is filled. If merges may overflow, it counts the numbers that are not finite after
/// each, because operations on devices do not check their results.
class DeviceUndo final : public MergeUndo {
 public:
  /// @param context, merged  of the first device: where copies are enqueued, and the end of the last merge.
  ///                         They and the others must outlive the object.
  DeviceUndo(Exchange& exchange, const Options& options, MergeStatus& status, Context& context,
             const Event& merged);

  void keep(int participant) override {
    if (participant == 0 && everyMerge()) keepAll();
  }
  void keepAll() override;
  bool failed() const override { return checks_ && *nonFiniteHere_.data<double>() != 0; }
  bool rollBack() override;

  // Called by the exchange:

  void restart();
  /// Before an abort. @throws if the device is lost.
  void noteAbort() { keptWhole_ = !keeping_ && kept_.complete(); }
  /// The device is lost.
  void lose() { keptWhole_ = false; }
  /// At the end of a merge: enqueues the count.
  void check();
  void wait() { kept_.wait(); }

 private:
  void requireFinite() const;

  MergeStatus& status_;
  Context& context_;
  const Event& merged_;
  Event kept_;                         // recorded when it was copied
  std::atomic<bool> keeping_{false};   // from before the copies until after `kept_` is recorded
  std::atomic<bool> keptWhole_{true};  // the copies were complete before an abort
  const bool checks_;
  Tensor nonFinite_, nonFiniteHere_;  // float64 [1]: elements of the last merge; the second in host memory
};

}  // namespace muster
