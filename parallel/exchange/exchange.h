#pragma once

#include <span>
#include <string>
#include <vector>

#include "muster/core/device/context.h"
#include "muster/core/ops/merge.h"
#include "muster/core/ops/threshold.h"
#include "muster/core/optim/state_block.h"

namespace muster {

/// One block as all replicas hold it, and the shadow that keeps its last merged value.
struct SharedBlock {
  std::string name;
  BlockKind kind = BlockKind::Parameters;
  MergeRule rule = MergeRule::Average;
  std::vector<Tensor> replicas;  // [worker]
  Tensor shadow;                 ///< the first worker's; none of gradients
  std::vector<Tensor> shadows;   ///< [worker] where its replica lies: those on one device share one
};

/// Elements [begin, end) of a block.
struct Slice {
  std::int64_t begin = 0, end = 0;
};

/// The slice of a block that one of the participants reduces: about as long as the others', and begun on a
/// cache line of its own.
Slice sliceOf(std::int64_t elements, int participant, int participants);

/// Moves and reduces numbers between replicas; what is reduced and when is the strategy's affair.
///
/// Every participant calls a verb from its own thread, all between the same two barriers, with the same
/// arguments; each does its part. The result does not depend on how the parts are scheduled.
///
/// Where replicas are computed by work that is enqueued, verbs are enqueued, too, and `arrive`, `begin`,
/// `end` and `follow` put them in order without anybody waiting:
///
///     arrive -> barrier -> begin -> verbs -> end -> barrier -> follow
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int participants() const = 0;

  /// What the participant has enqueued on `context` belongs to what it brings.
  virtual void arrive(int /*participant*/, Context& /*context*/) {}
  /// Verbs come after all that the participants have brought.
  virtual void begin(int /*participant*/) {}
  /// The verbs so far are a whole.
  virtual void end(int /*participant*/) {}
  /// What is enqueued on `context` from now on comes after the verbs.
  virtual void follow(int /*participant*/, Context& /*context*/) {}
  /// The caller waits until replicas and shadows hold all that was brought and what verbs made of it. While
  /// no participant is at work.
  virtual void wait() {}
  /// Whether the shadows hold the result of whole verbs; not where they were broken off. After `wait`.
  virtual bool whole() const { return true; }
  /// A failure: nobody shall wait for what will not come. Thread-safe.
  virtual void abort() noexcept {}
  /// Ready again after an abort, once replicas and shadows have been filled anew.
  virtual void restart() {}
  virtual std::span<const SharedBlock> blocks() const = 0;

  /// Of one participant, whose work is enqueued on `context`: enqueues a copy of its state, beside the
  /// shadow, which `takeStaged` turns into what `mergeState` would have made of it here. So the replica may
  /// train on before its scores have been read. Waits for nobody.
  /// @return false where that cannot be had; nothing was done then.
  virtual bool stage(Context& /*context*/) { return false; }
  /// The shadow holds what was staged last. Enqueues nothing.
  virtual void takeStaged() {}
  /// How it merges, in words; "" where there is nothing to tell.
  virtual std::string describe() const { return {}; }
  /// The block of this kind. @throws InvalidArgument unless there is just one.
  const SharedBlock& block(BlockKind kind) const;

  /// Merges all state: every block but the gradients. @return as `merge`, over all blocks.
  /// @param spread  as of `merge`, of the parameters.
  std::int64_t mergeState(int participant, std::span<const double> weights, Context& context,
                          Spread* spread = nullptr);

  /// Replaces `block` in all replicas and its shadow by its merged value under the block's own rule,
  /// weighted.
  /// @param weights  [worker], >= 0, not all 0.
  /// @param spread  unless null it receives how far the replicas were from their mean: this participant's
  ///                share of the sums. Of a block of rule Average; where work is enqueued this waits for it.
  /// @return the bytes that the participant would have to send to the others: those of its replica of the
  ///         block, or 0 where nothing need travel.
  virtual std::int64_t merge(int participant, const SharedBlock& block, std::span<const double> weights,
                             Context& context, Spread* spread = nullptr) = 0;
  /// Adds the weighted mean of the messages to `block`: to its shadow, of which all replicas become copies.
  /// @param messages  [worker] as long as the block.  @param weights  [worker], >= 0, not all 0.
  /// @return as `merge`, the message's bytes.
  virtual std::int64_t addEncoded(int participant, const SharedBlock& block,
                                  std::span<const ThresholdMessage* const> messages,
                                  std::span<const double> weights, Context& context) = 0;
  /// As `addEncoded`, for whole vectors, which become 0.
  /// @param spread  receives this participant's share of |mean|^2 (distance) and of the block's |x|^2 before.
  virtual std::int64_t addDense(int participant, const SharedBlock& block, std::span<const Tensor> vectors,
                                std::span<const double> weights, Context& context, Spread& spread) = 0;
};

/// The blocks that replicas have in common, with shadows of zeros.
/// @param states  [worker] the blocks of each replica that are reduced or merged.
/// @param averageUpdaters  false: the updater's state stays each worker's own.
/// @param groups  [worker] those of one number lie on one device, and share a shadow there.
/// @throws InvalidArgument naming blocks that differ in number, name or size, or cannot be merged.
std::vector<SharedBlock> sharedBlocks(const std::vector<std::vector<StateBlock*>>& states,
                                      bool averageUpdaters, std::span<const int> groups);
/// The bytes that a merge would have a participant send.
std::int64_t bytesToMerge(const SharedBlock& block, std::size_t participant, std::span<const double> weights);

}  // namespace muster
