#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

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
  double share = 0.01;  ///< of the elements that are merged together, in (0, 1]; at least one is sent
  bool operator==(const TopKCodec&) const = default;
};

/// What of the parameters a worker sends to a merge. It sends its replica's move from the base that all
/// workers know, which is the merged copy or the look-ahead point; the codec says how. What the codec leaves
/// out is kept in a residual beside each replica and added to the next move (error feedback), but for the
/// part of the move that the rule leaves in the replica. Averaged updater states, statistics, and what the
/// merge gives back to the workers travel whole.
///
/// On one host nothing travels: a codec costs time and memory there and saves nothing. It has the effect on
/// the training, and on MergeEvent::bytes, that it would have over a network. See `codeDelta` for the
/// arithmetic and the sources.
using Codec = std::variant<WholeReplicas, Bf16Codec, Int8Codec, E3M0Codec, TopKCodec>;

/// @param rule  begins the message. @throws InvalidArgument naming the option out of range.
void validate(const Codec& codec, std::string_view rule);
/// As in ", sent as int8 (...)"; "" if replicas are sent as they are.
std::string describe(const Codec& codec);
void codecFields(Fields& fields, Codec& codec);

/// A strategy's codec in a training.
class CodedReplicas {
 public:
  explicit CodedReplicas(const Codec& codec) : codec_(codec) {}

  /// Whether replicas are sent as they are.
  bool whole() const { return codec_.index() == 0; }
  /// Adds the blocks that it needs.
  void declare(std::vector<StrategyBlock>& blocks) const;
  /// @return [worker] what the others get of each replica's parameters, for Verbs::mean: the replicas
  ///         themselves, or until the next call a block of values that were encoded and decoded. Of a worker
  ///         of weight 0 nothing is sent.
  /// @param base  operands whose sum the workers know.
  /// @param remember  part of a replica's move that the merge takes from it, in [0, 1].
  std::span<const Tensor> send(std::span<const double> weights, std::initializer_list<Operand> base,
                               double remember, const Fragment& fragment, Verbs& verbs) const;

 private:
  const Codec codec_;
};

}  // namespace muster
