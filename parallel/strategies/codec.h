#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

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
/// kept in a residual of the replica and added to the next difference (error feedback), except the part
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
/// Whether replicas are sent as they are.
inline bool sendsWhole(const Codec& codec) {
  return codec.index() == 0;
}
void codecFields(Fields& fields, Codec& codec);  ///< visits the codec as one field and its options

}  // namespace muster
