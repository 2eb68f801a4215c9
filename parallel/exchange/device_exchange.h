#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/exchange/merge_plan.h"

namespace muster {

/// Replicas on GPUs. The first participant enqueues everything, for all devices, on streams that are the
/// exchange's own; the others' verbs do nothing but count bytes. Between those streams and the workers'
/// there are events: nobody waits on the host but for what is read there.
///
/// Replicas that share a device are merged by one kernel; across devices as MergePlan says. So the sums'
/// order is fixed: workers of a device in their order, rounded to the block's type, then the devices.
///
/// On the CPU it does the same at once, so that tests see every route but NCCL.
class DeviceExchange final : public Exchange {
 public:
  /// @param states  [worker] the blocks of each replica, on the device that the plan says.
  /// @param averageUpdaters  false: the updater's state stays each worker's own.
  /// @throws InvalidArgument as `sharedBlocks`; what Context and makeTransport throw.
  /// @param failing  for tests: a route that fails.
  DeviceExchange(const std::vector<std::vector<StateBlock*>>& states, bool averageUpdaters, MergePlan plan,
                 std::optional<Route> failing = {});

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

  std::int64_t merge(int participant, const SharedBlock& block, std::span<const double> weights,
                     Context& context, Spread* spread = nullptr) override;
  std::int64_t addEncoded(int participant, const SharedBlock& block,
                          std::span<const ThresholdMessage* const> messages, std::span<const double> weights,
                          Context& context) override;
  std::int64_t addDense(int participant, const SharedBlock& block, std::span<const Tensor> vectors,
                        std::span<const double> weights, Context& context, Spread& spread) override;

 private:
  void connect();

  /// A device and what merges there.
  struct Group {
    Group(const DeviceGroup& where, std::size_t groups, std::int64_t inboxBytes);
    std::vector<std::size_t> workers;
    std::unique_ptr<Context> context;
    Event merged;                  // all verbs up to the last `end`
    Tensor distances;              // float64 [workers or groups + 1]
    std::vector<Tensor> inboxes;   // [group] bytes; the slice that this group reduces, from each
    std::vector<Tensor> replicas;  // of the merge at hand
    std::vector<double> weights;   // likewise, its workers'
  };

  void setWeights(std::span<const double> weights);
  /// The tensors [worker] become their merged value, on each device that of the first worker at least, and
  /// with one device all and the shadow. @param spread  null: not measured.
  void reduce(std::span<const Tensor> tensors, MergeRule rule, std::span<const Tensor> shadows,
              Spread* spread);
  void reduceAcross(std::span<const Tensor> tensors, MergeRule rule, Spread* spread);
  void exchangeSlices(std::span<const Tensor> tensors, int parts, bool scatter);
  /// The merge of `group.replicas`, on their device. @return their spread, where it is measured.
  Spread apply(MergeRule rule, Group& group, std::span<const double> weights, Tensor shadow,
               std::int64_t elements, bool measure);
  /// What the first worker of each device holds goes to the others and the shadow there.
  void copyToOthers(const SharedBlock& block);
  void copyFromShadow(const SharedBlock& block, Group& group);
  void setZeroEverywhere(std::span<const Tensor> tensors);  // [worker]

  static constexpr std::array<double, 1> kWhole{1.0};

  const std::optional<Route> failing_;
  MergePlan plan_;  // its route is that of `transport_`
  std::vector<SharedBlock> blocks_;
  std::int64_t inboxBytes_ = 0;
  std::vector<Group> groups_;
  std::vector<Tensor> staged_;        // [block] of one participant: another shadow, where it has one
  std::vector<Event> arrivals_;       // [worker] recorded by its worker
  Transport transport_;               // with several groups
  std::vector<double> groupWeights_;  // [group] of the merge at hand
  std::vector<Send> sends_;           // likewise
  std::vector<Transfer> transfers_;   // likewise
  std::atomic<bool> whole_{true};     // not between `begin` and `end`
  std::atomic<bool> broken_{false};   // an exchange was aborted on its way
  std::atomic<bool> aborted_{false};
};

}  // namespace muster
