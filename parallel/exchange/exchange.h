#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/device/context.h"
#include "muster/core/ops/merge.h"
#include "muster/core/optim/state_block.h"
#include "muster/parallel/exchange/merge_undo.h"
#include "muster/parallel/exchange/mixing.h"
#include "muster/parallel/exchange/node_group.h"
#include "muster/parallel/exchange/slice.h"
#include "muster/parallel/exchange/strategy_block.h"

namespace muster {

/// One block of the model's state in all replicas, and the copies that keep its last merged value.
struct SharedBlock {
  std::string name;
  BlockKind kind = BlockKind::Parameters;
  MergeRule rule = MergeRule::Average;
  std::vector<Tensor> replicas;  // [worker] what operations work on: the replicas' blocks, or their mirrors
  std::vector<Tensor> mergedCopies;  // [worker] on its replica's device, one per device; empty for gradients
  std::shared_ptr<const SegmentTable> segments;
  Fragment whole = {};  // all elements

  /// Parts of equal length: means and variances, or one.
  int parts() const { return rule == MergeRule::Moments ? 2 : 1; }
  std::int64_t elementsOfPart() const { return replicas.front().elements() / parts(); }
  bool hasMergedCopy() const { return !mergedCopies.empty(); }
  const Tensor& mergedCopy() const { return mergedCopies.front(); }
};

/// As in "updater state".
std::string_view nameOf(BlockKind kind);

/// A participant's part of some work on blocks: a slice of what some workers hold.
struct Share {
  Context& context;                      // on which the work is done or enqueued
  std::span<const std::size_t> workers;  // those whose replicas the context reaches, in order
  Slice slice;
};

/// Called with a participant's shares, one after the other. A caller that must not allocate passes a
/// std::ref.
using ShareUse = std::function<void(const Share&)>;

/// The part of a weighted mean that is one slice: see MergeOps::mean.
struct SliceMean {
  std::span<const Tensor> tensors;  // [worker]
  std::span<const double> weights;  // [worker]
  Slice slice;
  std::span<const Tensor> into;  // [worker] one per device
  double keep = 0;
  bool later = false;  // with `keep` 0: may be formed while the workers train
};

/// Where the participants of an exchange are, and what follows from it. A value that never changes.
struct Topology {
  int participants = 1;  ///< the workers of all nodes
  /// This process and the number of processes. Participant p is on node p mod `nodes`; the replicas of
  /// participants on other nodes are tensors without memory.
  int node = 0, nodes = 1;
  /// How many senders a merge has if each sends once: the nodes over nodes, the groups in groups, otherwise
  /// the participants. Sender s sends for the participants s, s + senders, s + 2 senders, and so on.
  int senders = 1;
  /// True if one thread may merge the landing replicas while the other workers train.
  bool onePlace = false;
  /// Whether all replicas are in this process's memory and their mean is one sum. A strategy may then compute
  /// the mean in a pass of its own that also does other work (MergeOps::eachShare).
  bool oneSum = false;
  /// Whether `merge` checks the last step of each replica on the device, and writes nothing if one of these
  /// steps was refused (Model::stepRefused). If so, `merge` may be called before their scores are read.
  bool guardsMerges = false;
  /// Whether operations throw instead of writing numbers that are not finite.
  bool checksResults = true;

  bool isHere(std::size_t participant) const {
    return participant % static_cast<std::size_t>(nodes) == static_cast<std::size_t>(node);
  }
};

/// Carries out the operations that strategies call through MergeOps, for replicas on CPU cores or on devices.
/// Every participant calls an operation from its own thread, while no worker is inside a step, and with the
/// same arguments; each call does the participant's part. Every sum is formed in one place, in worker order,
/// in float64, and rounded once.
///
/// On devices operations are enqueued. `arrive`, `begin`, `end` and `enqueueAfter` order them, and no thread
/// waits:
///
///     arrive -> all wait -> begin -> operations -> end -> all wait -> enqueueAfter
class Exchange {
 public:
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const Topology& topology() const { return topology_; }
  int participants() const { return topology_.participants; }
  int node() const { return topology_.node; }
  int nodes() const { return topology_.nodes; }
  bool isHere(std::size_t participant) const { return topology_.isHere(participant); }
  std::span<const SharedBlock> blocks() const { return blocks_; }
  /// The block of this kind. @throws InvalidArgument unless there is exactly one.
  const SharedBlock& block(BlockKind kind) const;
  /// What nodes send each other in addition to replicas and sums; null on one node.
  NodeGroup* nodeGroup() const { return nodeGroup_; }
  /// NodeGroup::allGather; on one node a copy.
  void allGather(std::span<const std::byte> own, std::span<std::byte> all) const;

  /// Makes the strategy's blocks. Call it once, before any operation. @throws InvalidArgument for a name
  /// given twice.
  void makeStrategyBlocks(std::span<const StrategyBlock> declared);
  std::span<const StrategyState> strategyBlocks() const { return strategyBlocks_; }
  /// @throws InvalidArgument if the strategy has declared no block of this name.
  const StrategyState& strategyBlock(std::string_view name) const;

  /// Makes what undoes failed merges, which the exchange must outlive. Call it once, after
  /// `makeStrategyBlocks` and before the first merge.
  virtual std::unique_ptr<MergeUndo> makeUndo(MergeUndo::Options options) {
    return std::make_unique<MergeUndo>(*this, options);
  }
  /// The context that the participant's operations use. @param own  that of its worker.
  virtual Context& opsContext(int /*participant*/, Context& own) { return own; }
  /// With `onePlace`: from now on participant 0 runs every share (true), or each runs its own. Call it while
  /// no operation runs.
  virtual void runAllOnFirst(bool /*all*/) {}
  /// The transport of merges, as text; "" on the CPU.
  virtual std::string describe() const { return {}; }

  // Order of work. On the CPU operations are done when they return.

  /// Orders the merge after the work enqueued on `context`. Called again if `Strategy::contribute` may have
  /// added work, and after a replica has updated itself.
  virtual void arrive(int /*participant*/, Context& /*context*/) {}
  /// The operations that follow come after all contributions.
  virtual void begin(int /*participant*/) {}
  /// The operations since `begin` are complete.
  virtual void end(int /*participant*/) {}
  /// What is enqueued on `context` from now on comes after the operations.
  virtual void enqueueAfter(int /*participant*/, Context& /*context*/) {}
  /// Waits until replicas and merged copies hold the result of all operations. Call it while no participant
  /// works.
  virtual void wait() {}
  /// Whether the merged copies hold the result of complete operations. Call it after `wait`.
  virtual bool whole() const { return true; }
  /// After a failure: ends waiting for transfers that will not come. Thread-safe.
  virtual void abort() noexcept {}
  /// Before a run, also after `abort`: the caller has filled replicas and merged copies.
  virtual void restart() {}

  // A participant's part of the operations, called by MergeOps: see there.

  virtual void merge(int participant, const SharedBlock& block, std::span<const double> weights,
                     Context& context, Spread* spread) = 0;
  virtual void mean(int participant, const SliceMean& mean, Context& context) = 0;
  /// MergeOps::mergeCopy for a block of rule Moments. @throws InvalidArgument if it is not available.
  virtual void moments(int participant, const SharedBlock& block, std::span<const double> weights,
                       double keep, Context& context);
  virtual void mix(int participant, const SharedBlock& block, const Mixing& mixing, Context& context) = 0;
  /// Calls `use` for each of the participant's shares of a slice of a block of `elements` elements. On the
  /// CPU it has one share, a part of the slice for all workers. On devices the first participant has one
  /// share per device, the whole slice. Over N nodes it has N shares for this node's workers: those that N
  /// neighbours have in one process.
  virtual void eachShare(int participant, std::int64_t elements, Slice slice, Context& context,
                         const ShareUse& use) = 0;
  virtual void eachReplica(int participant, std::int64_t elements, Context& context, const ShareUse& use) {
    eachShare(participant, elements, {0, elements}, context, use);
  }
  virtual void allReduce(int /*participant*/, std::span<double> /*values*/) {}
  virtual void allGather(int /*participant*/, Messages& /*messages*/) {}
  virtual void allGatherEncoded(std::span<std::byte> /*all*/, std::span<const double> /*weights*/,
                                std::function<void(Context&)> then, bool /*later*/, Context& context) {
    then(context);
  }
  virtual Tensor fetch(int /*participant*/, std::span<const Tensor> tensors, std::size_t from,
                       std::size_t /*to*/, std::span<const Tensor> /*into*/, Context&) {
    return tensors[from];
  }

 protected:
  Exchange(const Topology& topology, std::vector<SharedBlock> blocks)
      : topology_(topology), blocks_(std::move(blocks)) {}

  // Changed by constructors alone.
  Topology topology_;
  std::vector<SharedBlock> blocks_;
  NodeGroup* nodeGroup_ = nullptr;

 private:
  std::vector<StrategyState> strategyBlocks_;
};

/// While an object of this class lives, participant 0 runs every share.
class AllOnFirst {
 public:
  explicit AllOnFirst(Exchange& exchange) : exchange_(exchange) { exchange_.runAllOnFirst(true); }
  ~AllOnFirst() { exchange_.runAllOnFirst(false); }
  AllOnFirst(const AllOnFirst&) = delete;
  AllOnFirst& operator=(const AllOnFirst&) = delete;

 private:
  Exchange& exchange_;
};

/// The blocks that replicas have in common, with merged copies of zeros.
/// @param states  [worker] the blocks of each replica that are reduced or merged.
/// @param updaterState  what a merge does with the updater's blocks.
/// @param groups  [worker] workers of one group are on one device, and share a merged copy there.
/// @throws InvalidArgument naming blocks that differ in number, name or size, or cannot be merged.
std::vector<SharedBlock> sharedBlocks(const std::vector<std::vector<StateBlock*>>& states,
                                      UpdaterState updaterState, std::span<const std::size_t> groups);
/// How far replicas are from a mean in memory: the sum of weights[w] |x_w - mean|^2 / sum of all weights over
/// some of the workers, and |mean|^2. @param weights  of all workers.
Spread spreadAbout(const Tensor& mean, std::span<const Tensor> replicas, std::span<const double> weights,
                   std::span<const std::size_t> workers, Slice slice, Context& context);
/// The bytes that a participant would send in a merge over a network.
std::int64_t bytesToMerge(const SharedBlock& block, std::size_t participant, std::span<const double> weights);

}  // namespace muster
