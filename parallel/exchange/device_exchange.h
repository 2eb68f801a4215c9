#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/exchange/merge_plan.h"

namespace muster {

/// Replicas on GPUs. The first participant enqueues everything, for all devices, on streams that are the
/// exchange's own; the verbs of the others do nothing. Events order these streams and the workers' streams:
/// the host waits only for what it reads.
///
/// Replicas that share a device are merged by one kernel; between devices as MergePlan says. So the order of
/// sums is fixed: the workers of a device in their order, in float64, then the devices, rounded once.
///
/// On the CPU it does the same at once, so that tests see every route but NCCL.
class DeviceExchange final : public Exchange {
 public:
  /// @param states  [worker] the blocks of each replica, on the device that the plan says.
  /// @param updaterState  what a merge does with the updater's blocks.
  /// @param failing  for tests: a route that fails.
  /// @throws InvalidArgument as `sharedBlocks`; what Context and makeTransport throw.
  DeviceExchange(const std::vector<std::vector<StateBlock*>>& states, UpdaterState updaterState,
                 MergePlan plan, std::optional<Route> failing = {});

  int participants() const override { return static_cast<int>(plan_.groupOf().size()); }
  std::span<const SharedBlock> blocks() const override { return blocks_; }

  void arrive(int participant, Context& context) override;
  void begin(int participant) override;
  void end(int participant) override;
  void follow(int participant, Context& context) override;
  void wait() override;
  bool whole() const override { return whole_ && !broken_; }
  std::string describe() const override { return plan_.describe(); }
  void abort() noexcept override;
  void restart() override;

  bool stage(Context& context) override;
  void takeStaged() override;

  void merge(int participant, const SharedBlock& block, std::span<const double> weights, Context& context,
             Spread* spread) override;
  void mean(int participant, std::span<const Tensor> tensors, std::span<const double> weights, Slice slice,
            std::span<const Tensor> into, Context& context) override;
  void eachShare(int participant, Slice slice, Context& context,
                 const std::function<void(const Share&)>& use) override;

 private:
  /// A device and what merges there.
  struct Group {
    Group(const DeviceGroup& where, std::size_t groups, std::int64_t sumBytes, std::int64_t inboxBytes);
    std::vector<std::size_t> workers;
    std::unique_ptr<Context> context;
    Event merged;                  // all verbs up to the last `end`
    Tensor distances;              // float64 [workers + 1]
    Tensor sums;                   // float64, as long as the longest block: the workers' weighted sum
    Tensor inbox;                  // bytes: the slice that this group reduces, from each
    std::vector<Tensor> replicas;  // of the merge in progress
  };

  void connect();
  void mergeOnOneDevice(const SharedBlock& block, std::span<const double> weights, Spread* spread);
  void mergeAcrossDevices(const SharedBlock& block, std::span<const double> weights, Spread* spread);
  /// The mean of elements of the workers' tensors, on every device. @param into  [worker] one a device.
  void meanAcross(std::span<const Tensor> tensors, std::span<const double> weights, Slice slice,
                  std::span<const Tensor> into);
  /// As `meanAcross`, of means and variances. Each replica's travel, as they are few.
  void momentsAcross(std::span<const Tensor> tensors, std::span<const double> weights,
                     std::span<const Tensor> into);
  /// Every group's slice of `into` goes to all others. @param parts  2 of means and variances, else 1.
  void gatherSlices(Slice slice, int parts, std::span<const Tensor> into);
  /// How far the replicas are from their mean, which each device has.
  Spread spreadAbout(std::span<const Tensor> mean, std::span<const Tensor> replicas,
                     std::span<const double> weights);
  void copyToAll(const SharedBlock& block, std::span<const Tensor> merged);
  void setZero(std::span<const Tensor> tensors);  // [worker]

  const std::optional<Route> failing_;
  MergePlan plan_;  // its route is that of `transport_`
  std::vector<SharedBlock> blocks_;
  bool sumsTravel_ = false;       // several workers share a device: their sum is sent, in float64
  std::size_t stagingBytes_ = 0;  // the most that one device sends another in one call
  std::vector<Group> groups_;
  std::vector<Tensor> staged_;       // [block] of one participant: another merged copy, if it has one
  std::vector<Event> arrivals_;      // [worker] recorded by its worker
  Transport transport_;              // with several groups
  std::vector<Send> sends_;          // of the merge in progress
  std::vector<Transfer> transfers_;  // likewise
  std::vector<Term> terms_;          // likewise
  std::atomic<bool> whole_{true};    // not between `begin` and `end`
  std::atomic<bool> broken_{false};  // a transfer was aborted
  std::atomic<bool> aborted_{false};
};

}  // namespace muster
