#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

#include "muster/core/ops/non_finite.h"
#include "muster/parallel/exchange/exchange.h"

namespace muster {

/// A factor and what it multiplies: replicas, merged copies or a strategy's block, [worker].
struct Operand {
  double factor = 1;
  std::span<const Tensor> values;
};

namespace detail {
/// Writes the sum of factor * values to worker w's target: see MergeOps::combine.
void combineOf(std::size_t w, std::initializer_list<Operand> operands, const Tensor& target, Slice slice,
               Context& context);
}  // namespace detail

/// The operations of a strategy in one merge, for one participant: on whole vectors, replicas and blocks, and
/// merges of state by the rules of its blocks. All participants make the same calls with the same arguments,
/// each on its thread; each call does the participant's part. The calls of one participant take effect in
/// their order, element by element, so a later call may use what an earlier one wrote.
class MergeOps {
 public:
  /// Which of the operations that wait for other participants may be called.
  enum class Waiting {
    Any,
    NoSums,  ///< `eachReplica`, but not `allReduce`: with arrivals
    None     ///< neither: one thread makes all calls, or the other workers are training
  };
  /// @param context  the participant's.
  MergeOps(Exchange& exchange, int participant, Context& context, Waiting waiting = Waiting::Any)
      : exchange_(exchange),
        participant_(participant),
        context_(exchange.opsContext(participant, context)),
        waiting_(waiting) {}

  int participant() const { return participant_; }
  int participants() const { return exchange_.participants(); }
  Context& context() const { return context_; }
  std::span<const SharedBlock> blocks() const { return exchange_.blocks(); }
  /// @throws InvalidArgument unless the model has exactly one block of this kind.
  const SharedBlock& block(BlockKind kind) const { return exchange_.block(kind); }
  /// A block that the strategy has declared. @throws InvalidArgument if no block has this name.
  std::span<const Tensor> own(std::string_view name) const { return exchange_.strategyBlock(name).values; }

  /// Writes the weighted mean of the replicas' tensors into a block of Place::MergedCopy, in the block's
  /// type, formed in float64 and rounded once.
  /// @param tensors  [worker] of the size of `into`.  @param weights  [worker], >= 0, not all 0.
  /// @param keep  in [0, 1): the block becomes keep * block + (1 - keep) * mean.
  /// @param later  for a fragment that lands in a later round, with `keep` 0: the call may return before the
  ///               mean is formed, which happens over nodes. The workers then train while it is sent and
  ///               formed. Use the mean in `land`, not earlier; a failure is thrown at the end of that round.
  ///               The tensors may change once the call has returned.
  /// @throws InvalidArgument for other weights, and on a GPU with more than 40 replicas (39 with `keep`).
  void mean(std::span<const Tensor> tensors, std::span<const double> weights, std::span<const Tensor> into,
            const Fragment& fragment, double keep = 0, bool later = false);
  /// target = sum of factor * values, element by element: in float64, in the order of the operands, rounded
  /// once. Operands of factor 0 are skipped, and a single operand of factor 1 is copied; without operands the
  /// target becomes 0. Worker w's target is formed from worker w's operands; a merged copy is formed once a
  /// device, from operands that its workers have in common.
  void combine(std::span<const Tensor> target, std::initializer_list<Operand> operands,
               const Fragment& fragment);
  /// As `combine` of all elements, for the workers for which `of(worker)` is true.
  template <typename F>
  void combineFor(F of, std::span<const Tensor> target, std::initializer_list<Operand> operands) {
    eachShare(target.front().elements(), [&](const Share& share) {
      for (const std::size_t w : share.workers)
        if (of(w)) detail::combineOf(w, operands, target[w], share.slice, share.context);
    });
  }
  /// Moves the replicas towards `from`: replica = keep * replica + (1 - keep) * from. With keep 0 they become
  /// copies, with 1 they do not change.
  void writeBack(std::span<const Tensor> from, std::span<const Tensor> replicas, double keep,
                 const Fragment& fragment);
  /// For work without an operation: calls `use` for each of this participant's shares of `elements` elements.
  /// @param use  `void use(const Share&)`.
  template <typename F>
  void eachShare(std::int64_t elements, F use) {
    exchange_.eachShare(participant_, elements, {0, elements}, context_, std::ref(use));
  }

  /// This participant's shares of sum_w |values_w - about_w|^2 and sum_w |about_w|^2; `relativeDistance` of
  /// the shares of all participants is the distance, and over nodes that of a node's participants. It reads
  /// both again, waits for the result on devices and for all participants over nodes, so call it only for
  /// numbers that listeners get.
  Spread distance(std::span<const Tensor> values, std::span<const Tensor> about, const Fragment& fragment);
  /// For work that needs whole replicas. On the CPU each participant gets its own replica; on devices the
  /// first participant gets all replicas of each device. All participants' earlier calls are done before it,
  /// and their later calls begin after it: on the CPU participants wait for each other.
  /// @param use  `void use(const Share&)`, of all `elements` elements.
  /// @throws InvalidArgument in Strategy::start and Strategy::contribute.
  template <typename F>
  void eachReplica(std::int64_t elements, F use) {
    requireWaiting("eachReplica", waiting_ != Waiting::None);
    exchange_.eachReplica(participant_, elements, context_, std::ref(use));
  }

  /// All-gathers the encoded bytes of every node: for what a rule's codec sends instead of replicas. One
  /// participant of each node calls it, within `eachReplica`. On one node it only calls `then`.
  /// @param all  [node] as many bytes for each; this node's are filled. They must stay in place.
  /// @param weights  [node] a node of weight 0 sends nothing.
  /// @param then  called once all bytes have arrived; writes to `target`. Called now, or, if `later` and the
  ///              strategy has declared an encoded block (StrategyBlock::encoded) and a saved merged copy in
  ///              flight, on another thread before an operation of the next round.
  /// @param later  see `mean`.
  void allGatherEncoded(std::span<std::byte> all, std::span<const double> weights,
                        std::function<void(Context&)> then, const Tensor& target, bool later,
                        Context& context) {
    named(target, [&] { exchange_.allGatherEncoded(all, weights, std::move(then), later, context); });
  }

  /// Tensor `from` of a block's size where worker `to` can read it: itself, or else `into[to]`, to which its
  /// values are copied; over nodes, those of this participant's shares. Valid until the next `fetch` with
  /// `into`. Counts no bytes.
  /// @param into  a block of Place::MergedCopy, of the tensors' type.
  Tensor fetch(std::span<const Tensor> tensors, std::size_t from, std::size_t to,
               std::span<const Tensor> into) {
    return exchange_.fetch(participant_, tensors, from, to, into, context_);
  }

  /// All-gathers one message per participant. On one node it does nothing.
  /// @throws InvalidArgument as `allReduce`; NodeFailure naming a node whose message cannot be.
  void allGather(Messages& messages) {
    requireWaiting("allGather", waiting_ == Waiting::Any);
    exchange_.allGather(participant_, messages);
  }

  /// Replaces the values by their sums over the participants, in their order (over nodes and in groups first
  /// over as many neighbours as there are nodes): for what each has computed in its shares. For the same bits
  /// over nodes as in groups, compute a number for each share by itself and add these numbers. Waits for all
  /// participants of all nodes. On devices the first participant has all shares, so its values do not change,
  /// and the others have none.
  /// @throws InvalidArgument in Strategy::start and Strategy::contribute, and in a strategy with arrivals.
  void allReduce(std::span<double> values) {
    requireWaiting("allReduce", waiting_ == Waiting::Any);
    exchange_.allReduce(participant_, values);
  }

  /// Adds to the bytes that this participant would send to the others over a network. `merge` and `mean` add
  /// what the participant contributes, once. `mix` adds its replica once for each row of other workers that
  /// reads it, where a row that workers share counts once; over nodes, once for each other node with such a
  /// row. The merged copy of `mix` is only shown to listeners, so it counts over nodes alone, as in `mean`.
  void countBytes(std::int64_t bytes) { bytes_ += bytes; }
  std::int64_t bytes() const { return bytes_; }

  // Merges by the rules of blocks:

  /// Replaces `block` in all replicas and merged copies by its merged value under the block's rule, weighted:
  /// one pass over the replicas. A merge of one contributor is a copy.
  /// @param weights  [worker], >= 0, not all 0.
  /// @param spread  unless null, receives how far the replicas were from their mean: this participant's share
  ///                of the sums (see `distance`). For blocks of rule Average; on devices this waits for the
  ///                result, and over nodes for all participants.
  void merge(const SharedBlock& block, std::span<const double> weights, Spread* spread = nullptr);
  /// Merges all state: every block except the gradients. @param spread  see `merge`, for the parameters.
  void mergeState(std::span<const double> weights, Spread* spread = nullptr);

  /// Merges all state except the parameters: for a strategy that merges the parameters itself.
  void mergeOthers(std::span<const double> weights);

  /// Moves the merged copy of `block` alone, by the block's rule: for Average it becomes
  /// keep * copy + (1 - keep) * mean of the replicas, for Moments the same mixture of distributions, for
  /// Reset 0. With Keep nothing happens.
  /// @param weights, keep  see `mean`.
  void mergeCopy(const SharedBlock& block, std::span<const double> weights, double keep);

  /// Replaces each replica of `block` by its own combination of all replicas, a row of `mixing`, and the
  /// merged copy by the weighted mean of the replicas. All are formed from the values before, in float64, in
  /// worker order, rounded once, on devices as on the host; the merged copy over several devices is formed as
  /// by `mean`. A replica without a row does not change; a row of one factor 1 is a copy. Rule Moments:
  /// factors are >= 0 and are the weights of a mixture of distributions. Rule Reset: replicas that have a
  /// row, and the merged copy, become 0. Rule Keep: nothing happens. A row has at most 40 replicas on a GPU
  /// (Moments: 32).
  void mix(const SharedBlock& block, const Mixing& mixing);
  /// Mixes all state: every block except the gradients.
  void mixState(const Mixing& mixing);
  /// Mixes the updater's state and the statistics.
  void mixOthers(const Mixing& mixing);

  /// For a rule that copies the merged copy of `block` to some replicas by itself: if the block is the
  /// updater's state and its rule Reset, the updaters of these workers start anew, their counts of updates
  /// included. The other operations do this themselves.
  /// @param isReset  `bool isReset(worker)`.
  template <typename F>
  void noteReset(const SharedBlock& block, F isReset) {
    if (block.rule != MergeRule::Reset || block.kind != BlockKind::UpdaterState) return;
    const auto own = static_cast<std::size_t>(participant_);
    const bool all = waiting_ == Waiting::NoSums;  // one thread may land for all workers
    if (all && own != 0) return;
    for (std::size_t w = all ? 0 : own; w < (all ? block.replicas.size() : own + 1); ++w)
      if (isReset(w)) resetUpdates(w);
  }

 private:
  void requireWaiting(std::string_view op, bool may) const;
  /// Calls `work`, which writes to `target`. @throws NonFiniteScore naming what it could not write.
  template <typename Work>
  void named(const Tensor& target, const Work& work) const {
    try {
      work();
    } catch (const NonFiniteResult& error) {
      throwNotFinite(target, error.element());
    }
  }
  /// Over nodes replaces the spread by the sum over the participants of all nodes for the first participant
  /// of each node, and by 0 for the others, so `relativeDistance` of a node's spreads is the distance.
  void addOverNodes(Spread& spread);
  /// Throws NonFiniteScore with the number and the block that a merge could not write.
  [[noreturn]] void throwNotFinite(const Tensor& target, std::int64_t element) const;
  /// @throws InvalidArgument unless there is a mean with these weights.
  static void requireMean(std::span<const double> weights, double keep);
  /// Whether an earlier worker of the list has the same tensor: a device's merged copy is written once.
  static bool seenBefore(std::span<const Tensor> tensors, std::span<const std::size_t> workers,
                         std::size_t at);
  void resetUpdates(std::size_t worker) const;
  /// For a block of rule Reset: sets the replicas of these workers to zero, and the merged copies, if wanted.
  template <typename F>
  void reset(const SharedBlock& block, F isReset, bool mergedCopies);
  void resetMergedCopies(const SharedBlock& block);

  Exchange& exchange_;
  const int participant_;
  Context& context_;
  const Waiting waiting_;
  std::int64_t bytes_ = 0;
};

}  // namespace muster
