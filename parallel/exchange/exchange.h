#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/device/context.h"
#include "muster/core/ops/merge.h"
#include "muster/core/optim/state_block.h"
#include "muster/parallel/exchange/mixing.h"
#include "muster/parallel/exchange/slice.h"
#include "muster/parallel/exchange/strategy_block.h"

namespace muster {

/// One block of the model's state in all replicas, and the copies that keep its last merged value.
struct SharedBlock {
  std::string name;
  BlockKind kind = BlockKind::Parameters;
  MergeRule rule = MergeRule::Average;
  std::vector<Tensor> replicas;      // [worker] what verbs work on: the replicas' blocks, or their mirrors
  std::vector<Tensor> mergedCopies;  // [worker] on its replica's device, one a device; empty for gradients
  std::shared_ptr<const SegmentTable> segments;
  Fragment whole = {};  // all elements

  bool hasMergedCopy() const { return !mergedCopies.empty(); }
  const Tensor& mergedCopy() const { return mergedCopies.front(); }
};

/// A participant's part of some work on blocks: a slice of what some workers hold.
struct Share {
  Context& context;                      // on which the work is done or enqueued
  std::span<const std::size_t> workers;  // those whose replicas the context reaches, in order
  Slice slice;
};

/// Messages of participants to all nodes: a head of one size for all, and a body whose size the head says.
/// Functions for different participants are called by several threads.
class Messages {
 public:
  virtual ~Messages() = default;
  /// The participant's head: written before it is sent, or received.
  virtual std::span<std::byte> head(std::size_t participant) = 0;
  /// Where its body is, of the size that the head says; also called for a head that was received.
  /// @throws InvalidArgument if no participant can have sent this head.
  virtual std::span<std::byte> body(std::size_t participant) = 0;
  /// Called once the body was received. @throws InvalidArgument as `body`.
  virtual void arrived(std::size_t /*participant*/) {}
};

/// A function of a Share, called while its caller waits. Unlike std::function it never allocates.
class ShareUse {
 public:
  template <typename F>
  explicit ShareUse(F& use)
      : use_(const_cast<void*>(static_cast<const void*>(&use))),
        call_([](void* f, const Share& share) { (*static_cast<F*>(f))(share); }) {}
  void operator()(const Share& share) const { call_(use_, share); }

 private:
  void* use_;
  void (*call_)(void*, const Share&);
};

/// Carries out the verbs for replicas on CPU cores or on devices. A strategy decides what is merged and when,
/// and calls the verbs through Verbs.
///
/// Every participant calls a verb from its own thread, between the same two barriers and with the same
/// arguments; each call does the participant's part. The result does not depend on how the parts are
/// scheduled: every sum is formed in one place, in worker order, in float64, and rounded once.
///
/// On devices verbs are enqueued. `arrive`, `begin`, `end` and `enqueueAfter` order them, and no thread
/// waits:
///
///     arrive -> barrier -> begin -> verbs -> end -> barrier -> enqueueAfter
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int participants() const = 0;
  virtual std::span<const SharedBlock> blocks() const = 0;
  /// This node, in a training over several processes. Participant p is on node p mod `nodes()`, and the
  /// replicas of participants on other nodes are tensors without memory.
  virtual int node() const { return 0; }
  virtual int nodes() const { return 1; }
  bool isHere(std::size_t participant) const {
    return participant % static_cast<std::size_t>(nodes()) == static_cast<std::size_t>(node());
  }
  /// Sends `own` to every node and waits for theirs. @param all  [node] as many bytes each as `own`.
  virtual void gather(std::span<const std::byte> own, std::span<std::byte> all);
  /// The context that the participant's verbs use. @param own  that of its worker.
  virtual Context& verbContext(int /*participant*/, Context& own) { return own; }
  /// Fills `into` with the values of all nodes of a block of Place::Node, in node order, or of all workers of
  /// a block of Place::Replica, in worker order. Waits until the other nodes send theirs: those of
  /// Place::Node by `gather`, the others also by `answer`.
  virtual void collect(const StrategyState& /*block*/, const Tensor& /*into*/) {}
  /// From now on nodes may collect replicas, and blocks of Place::Replica.
  virtual void allowCollecting() {}
  /// Fills `into` with the values of all replicas of a block, in worker order. Waits until the other nodes
  /// call `answer` or `gather`, which send theirs. Call it while no participant works.
  virtual void collect(const SharedBlock& /*block*/, const Tensor& /*into*/) {}
  /// If nodes may collect replicas: sends this node's to those that do, and waits until no node collects any
  /// more. All nodes call it at the end of a round, while no participant works.
  virtual void answer() {}
  /// Waits until what was launched is complete, and lands nothing. Call it while no participant works.
  /// @return false if some of it has failed: its landing will throw.
  virtual bool awaitLaunched() { return true; }
  /// How many senders a merge has if each sends once: the nodes over nodes, the groups in groups, otherwise
  /// the participants. Sender s sends for the participants s, s + senders(), s + 2 senders(), and so on.
  virtual int senders() const { return participants(); }
  /// Whether one participant can do the parts of all while others work: possible if only the replicas that
  /// take part are touched.
  virtual bool onePlace() const { return false; }
  /// Whether all replicas are in this process's memory and their mean is one sum. A strategy may then compute
  /// the mean in a pass of its own that also does other work (Verbs::eachShare).
  virtual bool oneSum() const { return false; }
  /// With `onePlace`: from now on the verbs of the first participant do the parts of all, or each participant
  /// does its own again. Call it while no verb runs.
  virtual void doneByFirst(bool /*all*/) {}
  /// The block of this kind. @throws InvalidArgument unless there is exactly one.
  const SharedBlock& block(BlockKind kind) const;

  /// Makes the strategy's blocks. Call it once, before any verb. @throws InvalidArgument for a name given
  /// twice.
  void makeStrategyBlocks(std::span<const StrategyBlock> declared);
  std::span<const StrategyState> strategyBlocks() const { return strategyBlocks_; }
  /// @throws InvalidArgument if the strategy has declared no block of this name.
  const StrategyState& strategyBlock(std::string_view name) const;

  /// Whether verbs throw instead of writing numbers that are not finite.
  virtual bool checksResults() const { return true; }

  // Order of work. On the CPU verbs are done when they return.

  /// All work that the participant has enqueued on `context` comes before its contribution. Called again if
  /// `Strategy::contribute` may have added work, and after a replica has updated itself.
  virtual void arrive(int /*participant*/, Context& /*context*/) {}
  /// The verbs that follow come after all contributions.
  virtual void begin(int /*participant*/) {}
  /// The verbs since `begin` are complete.
  virtual void end(int /*participant*/) {}
  /// What is enqueued on `context` from now on comes after the verbs.
  virtual void enqueueAfter(int /*participant*/, Context& /*context*/) {}
  /// Waits until replicas and merged copies hold the result of all verbs. Call it while no participant works.
  virtual void wait() {}
  /// Whether the merged copies hold the result of complete verbs. Call it after `wait`.
  virtual bool whole() const { return true; }
  /// Whether an abort may leave a merge half done whose verbs have all returned.
  virtual bool mayLoseMerges() const { return false; }
  /// From now on `keep` copies what a merge may overwrite (see MergeBackup: all of it or the statistics
  /// alone), so that a merge that fails can be undone.
  virtual void keepMerges(bool /*statisticsAlone*/) {}
  /// Whether `keep` does so.
  virtual bool keepsMerges() const { return false; }
  /// Unless `checksResults`, and after `keepMerges`: from now on every merge is checked on the devices.
  virtual void checkMerges() {}
  /// Whether the last merge is known to have written numbers that are not finite. Call it after `wait`.
  virtual bool foundNonFinite() const { return false; }
  /// Before a merge: copies the participant's part of what it may overwrite. Call it while no verb runs.
  /// @throws NonFiniteScore if the merge before was checked and has written numbers that are not finite.
  virtual void keep(int /*participant*/) {}
  /// Copies every participant's part. Requires `onePlace`. Without `keepMerges` the first call allocates.
  /// @throws as `keep`.
  virtual void keepAll() {}
  /// After a merge that has failed: restores the merged copies, and the strategy's blocks beside them, to
  /// what was kept before it. Call it while no participant works. @return false if that is not possible.
  virtual bool revert() { return false; }
  /// After a failure: ends waiting for transfers that will not come. Thread-safe.
  virtual void abort() noexcept {}
  /// Before a run, also after `abort`: the caller has filled replicas and merged copies.
  virtual void restart() {}

  /// Whether `merge` checks the last step of each replica on the device, and writes nothing if one of these
  /// steps was refused (Model::stepRefused). If so, `merge` may be called before their scores are read.
  virtual bool guardsMerges() const { return false; }
  /// The transport of merges, as text; "" on the CPU.
  virtual std::string describe() const { return {}; }

  // The parts of the verbs, called by Verbs.

  /// See Verbs::merge.
  virtual void merge(int participant, const SharedBlock& block, std::span<const double> weights,
                     Context& context, Spread* spread) = 0;
  /// See Verbs::mean. @param into  [worker] one a device.
  virtual void mean(int participant, std::span<const Tensor> tensors, std::span<const double> weights,
                    double keep, Slice slice, std::span<const Tensor> into, Context& context) = 0;
  /// Begins a mean that may be formed while the workers train: see Verbs::mean, `later`.
  /// @return false if this exchange has to form it now, by `mean`; nothing was done then.
  virtual bool launchMean(int /*participant*/, std::span<const Tensor> /*tensors*/,
                          std::span<const double> /*weights*/, Slice /*slice*/, const Tensor& /*into*/) {
    return false;
  }
  /// See Verbs::mergeCopy, for a block of rule Moments. @throws InvalidArgument if it is not available.
  virtual void moments(int participant, const SharedBlock& block, std::span<const double> weights,
                       double keep, Context& context);
  /// See Verbs::mix.
  virtual void mix(int participant, const SharedBlock& block, const Mixing& mixing, Context& context) = 0;
  /// Calls `use` for each of the participant's shares of a slice of a block of `elements` elements. On the
  /// CPU it has one share, a part of the slice for all workers. On devices the first participant has one
  /// share a device, the whole slice. Over N nodes it has N shares for this node's workers: those that N
  /// neighbours have in one process.
  virtual void eachShare(int participant, std::int64_t elements, Slice slice, Context& context,
                         ShareUse use) = 0;
  /// See Verbs::eachReplica.
  virtual void eachReplica(int participant, std::int64_t elements, Context& context, ShareUse use) {
    eachShare(participant, elements, {0, elements}, context, use);
  }
  /// See Verbs::tellNodes.
  virtual void tellNodes(std::span<std::byte> all, std::span<const double> weights,
                         std::function<void(Context&)> then, bool later, Context& context);
  /// See Verbs::sum.
  virtual void sum(int /*participant*/, std::span<double> /*values*/) {}
  /// See Verbs::bring.
  virtual Tensor bring(int /*participant*/, std::span<const Tensor> tensors, std::size_t from,
                       std::size_t /*to*/, std::span<const Tensor> /*into*/, Context&) {
    return tensors[from];
  }
  /// See Verbs::tellAll.
  virtual void tellAll(int /*participant*/, Messages&) {}

 private:
  std::vector<StrategyState> strategyBlocks_;
};

/// While an object of this class lives, the first participant's verbs do the parts of all.
class FirstDoesAll {
 public:
  explicit FirstDoesAll(Exchange& exchange) : exchange_(exchange) { exchange_.doneByFirst(true); }
  ~FirstDoesAll() { exchange_.doneByFirst(false); }
  FirstDoesAll(const FirstDoesAll&) = delete;
  FirstDoesAll& operator=(const FirstDoesAll&) = delete;

 private:
  Exchange& exchange_;
};

/// The blocks that replicas have in common, with merged copies of zeros.
/// @param states  [worker] the blocks of each replica that are reduced or merged.
/// @param updaterState  what a merge does with the updater's blocks.
/// @param groups  [worker] workers of one group are on one device, and share a merged copy there.
/// @throws InvalidArgument naming blocks that differ in number, name or size, or cannot be merged.
std::vector<SharedBlock> sharedBlocks(const std::vector<std::vector<StateBlock*>>& states,
                                      UpdaterState updaterState, std::span<const int> groups);
/// How far replicas are from a mean in memory: the sum of weights[w] |x_w - mean|^2 / sum of all weights over
/// some of the workers, and |mean|^2. @param weights  of all workers.
Spread spreadAbout(const Tensor& mean, std::span<const Tensor> replicas, std::span<const double> weights,
                   std::span<const std::size_t> workers, Slice slice, Context& context);
/// The bytes that a participant would send in a merge over a network.
std::int64_t bytesToMerge(const SharedBlock& block, std::size_t participant, std::span<const double> weights);

}  // namespace muster
