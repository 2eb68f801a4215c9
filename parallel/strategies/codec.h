#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/core/ops/delta_coding.h"
#include "muster/core/ops/linear_combination.h"
#include "muster/core/ops/low_rank.h"
#include "muster/parallel/strategies/strategy.h"

namespace muster {

class Fields;

/// Replicas are sent as they are.
struct WholeReplicas {
  bool operator==(const WholeReplicas&) const = default;
};
/// 16 bits an element.
struct Bf16Codec {
  bool operator==(const Bf16Codec&) const = default;
};
/// 8 bits an element, and a scale for each 256 elements: the largest of these becomes 127.
struct Int8Codec {
  bool operator==(const Int8Codec&) const = default;
};
/// 4 bits an element, and an exponent for each 256 elements: 0, or plus or minus a power of two, over seven
/// octaves.
struct E3M0Codec {
  bool operator==(const E3M0Codec&) const = default;
};
/// The largest elements, with their positions: 64 bits for each element sent.
struct TopKCodec {
  /// The share of elements that is sent, in (0, 1], at least one; of a fragment, the share of each run of
  /// adjacent tensors. The padding between tensors does not count.
  double share = 0.01;
  bool operator==(const TopKCodec&) const = default;
};

/// The change of each matrix, [outputs, the rest], as a product P Q^T of two narrow matrices: the workers
/// average P from the last Q, then Q from that P. Matrices whose factors would not be smaller, and vectors,
/// are sent as they are. Source: Vogels, Karimireddy & Jaggi 2019.
struct PowerSgdCodec {
  std::int64_t rank = 2;  ///< 1 to 32
  bool operator==(const PowerSgdCodec&) const = default;
};

/// How a worker encodes the parameters that it sends to a merge. It sends the difference between its replica
/// and a base that all workers know, the merged copy or the look-ahead point. What the codec leaves out is
/// kept in a residual beside the replica and added to the next difference (error feedback), except the part
/// that the rule leaves in the replica. Averaged updater states, statistics, and what the merge gives back to
/// the workers are not encoded.
///
/// Over nodes each node sends once and has the residual: see CodedReplicas::mean. See `codeDelta` for the
/// arithmetic and the sources.
using Codec = std::variant<WholeReplicas, Bf16Codec, Int8Codec, E3M0Codec, TopKCodec, PowerSgdCodec>;

/// @param rule  begins the message. @throws InvalidArgument naming the option out of range.
void validate(const Codec& codec, std::string_view rule);
/// @throws InvalidArgument for PowerSgdCodec, whose factors are means over all workers.
/// @param merge  a rule that merges only some workers, as in "gossip".
void requireSentToSome(const Codec& codec, std::string_view merge);
/// As in ", sent as int8 (...)"; "" if replicas are sent as they are.
std::string describe(const Codec& codec);
void codecFields(Fields& fields, Codec& codec);  ///< visits the codec as one field and its options

/// A strategy's codec in a training.
class CodedReplicas {
 public:
  explicit CodedReplicas(const Codec& codec) : codec_(codec) {}

  /// Whether replicas are sent as they are.
  bool whole() const { return codec_.index() == 0; }
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
  /// The parts of a fragment that are sent as matrices, and the parts that are sent as they are.
  struct Matrices {
    const Fragment* fragment;
    std::vector<LowRankMatrix> matrices;
    Fragment left, right;  // factors of the matrices
    Fragment others;
  };
  /// A fragment as nodes send it to each other.
  struct Packed {
    const Fragment* fragment;
    Tensor bytes;                      // [node] of one size: first `others`, then the matrices' Q
    std::vector<double> weights = {};  // [node]
    std::vector<Term> terms = {};      // terms of the mean
    Tensor into = {};
  };
  Matrices matricesOf(const SegmentTable* segments, const Fragment& fragment, std::int64_t rank) const;
  /// Operands whose sum all workers know.
  using Base = std::initializer_list<Operand>;
  /// Encodes slices one by one. @return the number of bytes that a worker sends.
  /// @param packed  what this node sends to the others; empty on one node.
  std::int64_t sendSlices(std::span<const double> weights, Base base, double remember,
                          const Fragment& fragment, MergeOps& ops, std::span<std::byte> packed = {}) const;
  std::int64_t sendMatrices(std::span<const double> weights, Base base, double remember,
                            const Matrices& matrices, MergeOps& ops, std::span<std::byte> packed = {}) const;
  std::int64_t bytesOf(const Fragment& fragment) const;
  DeltaCoding codingOf(Slice slice) const;
  const Matrices* findMatrices(const Fragment& fragment) const;
  /// The values of which worker w, or sender w, sends a part.
  const Tensor& valuesOf(std::size_t w, const SharedBlock& parameters) const {
    return ofSenders_.empty() ? parameters.replicas[w] : ofSenders_[w];
  }
  // If a sender is not a single worker.
  void beginSenders(const Exchange& exchange);
  std::span<const double> formSenders(std::span<const double> weights, const Fragment& fragment,
                                      MergeOps& ops);
  // Over nodes.
  void beginNodes(const Exchange& exchange, std::span<const Fragment> fragments);
  void gatherEncoded(std::span<const double> weights, Base base, double remember, const Fragment& fragment,
                     const Tensor& into, MergeOps& ops, bool later);
  void finish(Packed& packed, Context& context);
  void unpack(const Packed& packed, std::size_t node, Context& context);

  const Codec codec_;
  SharedBlock sent_;
  std::vector<Matrices> matrices_;  // [fragment] with PowerSgdCodec

  std::size_t senders_ = 0;
  std::vector<Tensor> ofSenders_;                   // [sender] the means of their workers, for senders here
  std::vector<std::vector<Term>> terms_;            // [sender] terms of these means
  std::vector<std::vector<double>> senderWeights_;  // [participant] written by it: weights, 0: no sender

  std::size_t node_ = 0;
  std::vector<Packed> packed_;   // [fragment]; empty on one node
  std::vector<Tensor> decoded_;  // [node]
  Tensor means_, factors_;       // for matrices: the block kMeans, and another node's factors
};

}  // namespace muster
