#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/strategies/replica_coder.h"

namespace muster {

namespace detail {

/// The memory of CodedReplicas in addition to the blocks that it declares, in blocks of the parameters' size.
struct CodedMemory {
  bool any = false;              ///< the rule has a codec, and each sender sends once
  std::int64_t ofSender = 0;     ///< for each sender of this process
  std::int64_t ofNode = 0;       ///< over nodes, for this node
  std::int64_t ofOtherNode = 0;  ///< over nodes, for each other node
};
/// @param together  whether a sender sends for several workers.
CodedMemory codedMemory(std::span<const StrategyBlock> declared, bool together);

}  // namespace detail

/// A strategy's codec in a training.
class CodedReplicas {
 public:
  explicit CodedReplicas(const Codec& codec) : codec_(codec) {}

  /// Whether replicas are sent as they are.
  bool whole() const { return sendsWhole(codec_); }
  /// Adds the blocks that the codec needs. @param means  whether the rule calls `mean`, not `send`.
  void declare(std::vector<StrategyBlock>& blocks, bool means = false) const;
  /// @param fragments  that will be sent; they outlive the object.
  void begin(const Exchange& exchange, std::span<const Fragment> fragments);
  /// Writes the weighted mean of what is sent to `into`, a block of Place::MergedCopy. Each sender of the
  /// exchange sends once: a worker its replica; over nodes, and in groups, a node the weighted mean of its
  /// replicas (float64, rounded once), with the sum of their weights and one residual. What a node sends
  /// goes encoded to all other nodes; each decodes it, and adds up the decoded values in the order of the
  /// nodes, in float64, rounded once.
  /// @param weights, base, remember, fragment  see `send`.
  /// @param later  the fragment lands in a later round: see MergeOps::mean.
  void mean(std::span<const double> weights, std::initializer_list<Operand> base, double remember,
            const Fragment& fragment, std::span<const Tensor> into, MergeOps& ops, bool later = false);
  /// @return [worker] what the others receive of each replica's parameters, for MergeOps::mean: the replicas
  ///         themselves, or, until the next call, a block of encoded and decoded values. A worker of weight 0
  ///         sends nothing.
  /// @param base  operands whose sum all workers know.
  /// @param remember  part of a replica's change that the merge takes from it, in [0, 1].
  /// @param fragment  one of the fragments given to `begin`.
  std::span<const Tensor> send(std::span<const double> weights, std::initializer_list<Operand> base,
                               double remember, const Fragment& fragment, MergeOps& ops) const;
  /// The values that were sent instead of the replicas, for MergeOps::mix. Valid after `begin`, unless
  /// `whole`.
  const SharedBlock& sent() const { return sent_; }

 private:
  using Base = std::initializer_list<Operand>;
  /// A fragment as it is sent.
  struct Sent {
    const Fragment* fragment;
    detail::ReplicaCoder coder;
    // Over nodes:
    Tensor packed = {};                // [node] bytes of one size
    std::vector<double> weights = {};  // [node]
    Tensor into = {};

    /// The bytes of one node.
    std::span<std::byte> packedOf(std::size_t node, std::size_t nodes) const;
  };
  /// Forms the means that senders of several workers send (float64, rounded once). @return [participant] the
  /// sum of a sender's weights for its first worker; 0 for the others.
  std::span<const double> formMeans(std::span<const double> weights, const Fragment& fragment, MergeOps& ops);
  /// [worker or sender] what they send parts of.
  std::span<const Tensor> values(MergeOps& ops) const;
  void gatherEncoded(std::span<const double> weights, Base base, double remember, const Fragment& fragment,
                     const Tensor& into, MergeOps& ops, bool later);
  void finish(const Sent& sent, Context& context) const;

  const Codec codec_;
  SharedBlock sent_;
  std::vector<Sent> fragments_;

  // If a sender is not a single worker:
  std::vector<Tensor> means_;                 // [sender] for senders here; empty: each sends its replica
  std::vector<std::vector<Term>> terms_;      // [sender] of these means
  std::vector<std::vector<double>> weights_;  // [participant] written by it: weights, 0: no sender

  // Over nodes:
  std::size_t node_ = 0;
  std::vector<Tensor> decoded_;           // [node]; empty on one node
  Tensor meanFactors_, receivedFactors_;  // for matrices: the block kMeans, and another node's factors
};

}  // namespace muster
