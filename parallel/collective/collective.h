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
  Tensor shadow;                 ///< none of gradients
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
class Collective {
 public:
  virtual ~Collective() = default;
  virtual int participants() const = 0;
  virtual std::span<const SharedBlock> blocks() const = 0;
  /// The block of this kind. @throws InvalidArgument unless there is just one.
  const SharedBlock& block(BlockKind kind) const;

  /// Merges all state: every block but the gradients. @return as `merge`, over all blocks.
  std::int64_t mergeState(int participant, std::span<const double> weights, Context& context);

  /// Replaces `block` in all replicas and its shadow by its merged value under the block's own rule,
  /// weighted.
  /// @param weights  [worker], >= 0, not all 0.
  /// @return the bytes that the participant would have to send to the others: those of its replica of the
  ///         block, or 0 where nothing need travel.
  virtual std::int64_t merge(int participant, const SharedBlock& block, std::span<const double> weights,
                             Context& context) = 0;
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
  /// How far the replicas of `block` are from their weighted mean; this participant's share of the sums.
  virtual Spread spread(int participant, const SharedBlock& block, std::span<const double> weights) = 0;
};

}  // namespace muster
