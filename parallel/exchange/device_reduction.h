#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "muster/parallel/exchange/merge_plan.h"
#include "muster/parallel/exchange/row_mixer.h"

namespace muster {

/// Forms means over replicas on several devices, as MergePlan says, and mixes replicas. One thread enqueues
/// everything.
class DeviceReduction {
 public:
  struct Member {
    Member(const DeviceGroup& group, std::size_t workersOfAll);
    std::span<const std::size_t> workers;
    std::unique_ptr<Context> context;  // on which its work is enqueued
    Event merged;                      // recorded after all operations up to the last end of a merge
    Tensor distances;                  // float64 [workers + 1]
    Tensor sums;    // bytes: the weighted sum of its workers, float64, as long as the longest block
    Tensor inbox;   // bytes: the slice that it reduces, from each member or worker
    Tensor mixing;  // bytes: scratch memory of the mixer
    RowMixer mixer;
  };
  /// @param plan  outlives this object; `connect` sets its transport to one that works.
  /// @param failing  for tests: a transport that fails.
  /// @throws InvalidArgument for a block of means and variances with too many replicas.
  DeviceReduction(MergePlan& plan, std::span<const SharedBlock> blocks, std::optional<TransportKind> failing);

  /// [group of the plan]
  std::span<Member> members() { return members_; }
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
  /// Moves the merged copies of a block of rule Moments.
  void mergeMoments(const SharedBlock& block, std::span<const double> weights, double keep);
  /// Mixes a block of rule Average or Moments.
  void mix(const SharedBlock& block, const Mixing& mixing);

 private:
  std::int64_t mixedAtATime(const SharedBlock& block) const;
  void bring(const SharedBlock& block, Slice slice, std::size_t worker, std::size_t member);
  /// Forms a block a few elements at a time: brings each member those of the replicas that it needs, and
  /// calls `form(member)`. @param needs  `bool needs(member, worker)`.
  template <typename Needs, typename Form>
  void inPieces(const SharedBlock& block, Needs needs, Form form);
  void send(std::size_t from, std::size_t to, const Tensor& source, const Tensor& target) {
    if (source.elements() > 0)
      transfers_.push_back({static_cast<int>(from), static_cast<int>(to), source, target});
  }

  MergePlan& plan_;
  const std::optional<TransportKind> failing_;
  std::size_t mostWorkers_ = 0;   // of a device
  bool sumsTravel_ = false;       // several workers share a device: their sum is sent, in float64
  std::size_t stagingBytes_ = 0;  // the most that one device sends another in one call
  std::vector<Member> members_;   // [group of the plan]
  Transport transport_;           // only with several members
  // State of the work in progress:
  std::vector<Transfer> transfers_;
  std::vector<Term> terms_;
};

}  // namespace muster
