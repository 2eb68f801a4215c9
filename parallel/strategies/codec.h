#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

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
/// 8 bits an element, and a scale for each 256: the largest of them is 127.
struct Int8Codec {
  bool operator==(const Int8Codec&) const = default;
};
/// 4 bits an element, and an exponent for each 256: plus or minus a power of two, over seven octaves, or 0.
struct E3M0Codec {
  bool operator==(const E3M0Codec&) const = default;
};
/// The largest elements, with their positions: 64 bits for each of them.
struct TopKCodec {
  /// Of the elements that are merged together, in (0, 1]. Of a fragment: of each run of adjacent tensors. At
  /// least one of them is sent.
  double share = 0.01;
  bool operator==(const TopKCodec&) const = default;
};

/// The move of each matrix, [outputs, the rest], as a product P Q^T of two narrow ones: the workers average P
/// from the last Q, then Q from that P. Matrices whose factors would not be shorter, and vectors, are sent as
/// they are. Source: Vogels, Karimireddy & Jaggi 2019.
struct PowerSgdCodec {
  std::int64_t rank = 2;  ///< 1 to 32
  bool operator==(const PowerSgdCodec&) const = default;
};

/// What of the parameters a worker sends to a merge. It sends its replica's move from the base that all
/// workers know, which is the merged copy or the look-ahead point; the codec says how. What the codec leaves
/// out is kept in a residual beside each replica and added to the next move (error feedback), but for the
/// part of the move that the rule leaves in the replica. Averaged updater states, statistics, and what the
/// merge gives back to the workers travel whole.
///
/// On one machine nothing is sent: a codec costs time and memory there and saves nothing. It has the effect
/// on the training, and on MergeEvent::bytes, that it would have over a network. Over nodes the node sends,
/// and has the residual: see CodedReplicas::mean. See `codeDelta` for the arithmetic and the sources.
using Codec = std::variant<WholeReplicas, Bf16Codec, Int8Codec, E3M0Codec, TopKCodec, PowerSgdCodec>;

/// @param rule  begins the message. @throws InvalidArgument naming the option out of range.
void validate(const Codec& codec, std::string_view rule);
/// @throws InvalidArgument for PowerSgdCodec, whose factors are means over all workers. @param merge  that
/// joins only some of them, as in "gossip".
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
  /// Adds the blocks that it needs. @param means  of a rule that calls `mean`, not `send`.
  void declare(std::vector<StrategyBlock>& blocks, bool means = false) const;
  /// @param fragments  that will be sent; they outlive the object.
  void begin(const Exchange& exchange, std::span<const Fragment> fragments);
  /// Writes the weighted mean of what is sent to `into`, a block of Place::MergedCopy. Each sender of the
  /// exchange sends once: a worker its replica; over nodes, and in groups, a node the weighted mean of its
  /// replicas (float64, rounded once), with the sum of their weights and one residual. What a node sends
  /// goes encoded to all other nodes; each decodes it, and adds up the decoded values in the order of the
  /// nodes, in float64, rounded once.
  /// @param weights, base, remember, fragment  as of `send`.
  /// @param later  the fragment lands in a later round: see MeansInFlight.
  void mean(std::span<const double> weights, std::initializer_list<Operand> base, double remember,
            const Fragment& fragment, std::span<const Tensor> into, Verbs& verbs, bool later = false);
  /// @return [worker] what the others get of each replica's parameters, for Verbs::mean: the replicas
  ///         themselves, or until the next call a block of values that were encoded and decoded. Of a worker
  ///         of weight 0 nothing is sent.
  /// @param base  operands whose sum the workers know.
  /// @param remember  part of a replica's move that the merge takes from it, in [0, 1].
  /// @param fragment  one of those of `begin`.
  std::span<const Tensor> send(std::span<const double> weights, std::initializer_list<Operand> base,
                               double remember, const Fragment& fragment, Verbs& verbs) const;
  /// What was sent in the place of the replicas, for Verbs::mix. After `begin`, unless `whole`.
  const SharedBlock& sent() const { return sent_; }

 private:
  /// What of a fragment is sent as matrices, and what as it is.
  struct Matrices {
    const Fragment* fragment;
    std::vector<LowRankMatrix> matrices;
    Fragment left, right;  // their factors
    Fragment others;
  };
  /// What nodes tell each other of a fragment.
  struct Packed {
    const Fragment* fragment;
    Tensor bytes;                      // [node] of one size: matrices' Q after what is no matrix
    std::vector<double> weights = {};  // [node]
    std::vector<Term> terms = {};      // of the mean
    Tensor into = {};
  };
  Matrices matricesOf(const SegmentTable* segments, const Fragment& fragment, std::int64_t rank) const;
  /// Operands whose sum the workers know.
  using Base = std::initializer_list<Operand>;
  /// Encodes slices one by one. @return bytes that a worker sends.
  /// @param packed  what this node tells the others; empty on one node.
  std::int64_t sendSlices(std::span<const double> weights, Base base, double remember,
                          const Fragment& fragment, Verbs& verbs, std::span<std::byte> packed = {}) const;
  std::int64_t sendMatrices(std::span<const double> weights, Base base, double remember,
                            const Matrices& matrices, Verbs& verbs, std::span<std::byte> packed = {}) const;
  std::int64_t bytesOf(const Fragment& fragment) const;
  const Matrices* findMatrices(const Fragment& fragment) const;
  /// What worker w sends a part of.
  const Tensor& valuesOf(std::size_t w, const SharedBlock& parameters) const {
    return ofSenders_.empty() ? parameters.replicas[w] : ofSenders_[w];
  }
  // Where a sender is not a worker.
  void beginSenders(const Exchange& exchange);
  std::span<const double> formSenders(std::span<const double> weights, const Fragment& fragment,
                                      Verbs& verbs);
  // Over nodes.
  void beginNodes(const Exchange& exchange, std::span<const Fragment> fragments);
  void tellNodes(std::span<const double> weights, Base base, double remember, const Fragment& fragment,
                 const Tensor& into, Verbs& verbs, bool later);
  void finish(Packed& packed, Context& context);
  void unpack(const Packed& packed, std::size_t node, Context& context);

  const Codec codec_;
  SharedBlock sent_;
  std::vector<Matrices> matrices_;  // [fragment] with PowerSgdCodec

  std::size_t senders_ = 0;
  std::vector<Tensor> ofSenders_;                   // [sender] the means of their workers, if they are here
  std::vector<std::vector<Term>> terms_;            // [sender] of these
  std::vector<std::vector<double>> senderWeights_;  // [participant] written by it: [participant] 0: no sender

  std::size_t node_ = 0;
  std::vector<Packed> packed_;   // [fragment]; empty on one node
  std::vector<Tensor> decoded_;  // [node]
  Tensor means_, factors_;       // of matrices: the block, and another node's
};

}  // namespace muster
