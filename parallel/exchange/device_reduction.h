#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/exchange/merge_plan.h"
#include "muster/parallel/exchange/row_mixer.h"

namespace muster {

/// Forms means over replicas on several devices, as MergePlan says, and mixes replicas. One thread enqueues
/// everything.
class DeviceReduction {
 public:
  /// A device's part.
  struct Member {
    std::vector<std::size_t> workers;
    Context* context;  // on which its work is enqueued
    Tensor sums;       // bytes: the weighted sum of its workers, float64, as long as the longest block
    Tensor inbox;      // bytes: the slice that it reduces, from each member or worker
    Tensor mixing;     // bytes: scratch memory of the mixer
    RowMixer mixer;
  };
  /// @param plan  outlives this object; `connect` sets its transport to one that works.
  /// @param contexts  [group of the plan]
  /// @param blocks  that will be merged.
  /// @param failing  for tests: a transport that fails.
  /// @throws InvalidArgument for a block of means and variances with too many replicas.
  DeviceReduction(MergePlan& plan, const std::vector<Context*>& contexts, std::span<const SharedBlock> blocks,
                  std::optional<TransportKind> failing);

  /// Makes the transport. Call it first, and after `abort`. @throws what makeTransport throws.
  void connect();
  /// Whether transfers in progress wait for all devices, so that they must be aborted after a failure.
  bool waitsForAll() const { return transport_.copies && transport_.kind == TransportKind::Nccl; }
  /// Call it only if `waitsForAll`. Thread-safe.
  void abort() noexcept { transport_.copies->abort(); }

  /// Forms the weighted mean of a slice of the workers' tensors, on every device.
  /// @param keep  `into` becomes keep * into + (1 - keep) * mean.
  /// @param into  [worker] one per device.
  void mean(std::span<const Tensor> tensors, std::span<const double> weights, double keep, Slice slice,
            std::span<const Tensor> into);
  /// Moves the merged copies of a block of rule Moments. Its numbers are few, so each device receives those
  /// of every replica.
  void mergeMoments(const SharedBlock& block, std::span<const double> weights, double keep);
  /// Mixes a block of rule Average or Moments. Each device receives the replicas that its workers' rows read,
  /// some elements at a time, and forms these rows.
  void mix(const SharedBlock& block, const Mixing& mixing);

 private:
  std::int64_t mixedAtATime(const SharedBlock& block) const;
  /// Whether a row of the member's workers reads this replica.
  bool reads(const Member& member, const Mixing& mixing, std::size_t worker) const {
    return std::ranges::any_of(member.workers, [&](std::size_t w) { return mixing.reads(w, worker); });
  }
  void bring(const SharedBlock& block, Slice slice, std::size_t worker, std::size_t member);
  /// Forms a block a few elements at a time: brings each member those of the replicas that it needs, and
  /// calls `form(member)`. @param needs  `bool needs(member, worker)`.
  template <typename Needs, typename Form>
  void inPieces(const SharedBlock& block, Needs needs, Form form);
  void gather(Slice slice, std::span<const Tensor> into);

  MergePlan& plan_;
  const std::optional<TransportKind> failing_;
  bool sumsTravel_ = false;       // several workers share a device: their sum is sent, in float64
  std::size_t stagingBytes_ = 0;  // the most that one device sends another in one call
  std::vector<Member> members_;   // [group of the plan]
  Transport transport_;           // only with several members
  // State of the work in progress:
  std::vector<Send> sends_;
  std::vector<Transfer> transfers_;
  std::vector<Term> terms_;
};

}  // namespace muster
