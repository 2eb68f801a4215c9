#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "muster/core/ops/delta_coding.h"
#include "muster/core/ops/low_rank.h"
#include "muster/parallel/exchange/merge_ops.h"
#include "muster/parallel/strategies/codec.h"

namespace muster::detail {

/// The blocks that CodedReplicas declares.
inline constexpr std::string_view kCoded = "coded replicas", kResidual = "coding residual",
                                  kFactors = "factors", kMeans = "mean factors";

/// What is sent of the parameters, and to whom it is known.
struct Sending {
  std::span<const double> weights;      // [worker or sender] 0: sends nothing
  std::span<const Tensor> values;       // [worker or sender]
  std::initializer_list<Operand> base;  // operands whose sum all workers know
  double remember = 0;                  // see CodedReplicas::send
  std::span<std::byte> packed = {};     // receives what this node sends to the others; empty on one node
};

/// Encodes fragments of the parameters as differences from a base, and decodes them.
class ReplicaCoder {
 public:
  explicit ReplicaCoder(const Codec& codec) : codec_(codec) {}
  /// @param parameters  their segments and type. @param fragments  that will be sent; they outlive the
  /// object.
  void begin(const SharedBlock& parameters, std::span<const Fragment> fragments);

  /// Encodes and decodes what each worker or sender of this participant sends: its block kCoded then holds
  /// what the others receive, and kResidual what was left out.
  /// @return the bytes that a worker sends; they lack the factors of matrices, whose means count them.
  std::int64_t encode(const Sending& sending, const Fragment& fragment, MergeOps& ops) const;
  /// The bytes of a fragment in Sending::packed.
  std::int64_t packedBytes(const Fragment& fragment) const;
  /// Decodes such bytes into `decoded`, which holds the base.
  /// @param means  the block kMeans of the merge. @param factors  memory of the parameters' size.
  void unpack(const Fragment& fragment, std::span<const std::byte> packed, const Tensor& decoded,
              const Tensor& means, const Tensor& factors, Context& context) const;
  /// How a slice of a fragment is encoded, without Sending::remember.
  DeltaCoding codingOf(Slice slice) const;

 private:
  /// The parts of a fragment that are sent as matrices, and the parts that are sent as they are.
  struct Matrices {
    const Fragment* fragment;
    std::vector<LowRankMatrix> matrices;
    Fragment left, right;  // factors of the matrices
    Fragment others;
  };
  static Matrices matricesOf(const SegmentTable* segments, const Fragment& fragment, std::int64_t rank);
  const Matrices* findMatrices(const Fragment& fragment) const;
  std::int64_t codedBytesOf(const Fragment& fragment) const;
  std::int64_t encodeSlices(const Sending& sending, const Fragment& fragment, MergeOps& ops) const;
  std::int64_t encodeMatrices(const Sending& sending, const Matrices& matrices, MergeOps& ops) const;

  const Codec codec_;
  std::shared_ptr<const SegmentTable> segments_;
  DType type_ = DType::Float32;     // of the parameters
  std::vector<Matrices> matrices_;  // [fragment] with PowerSgdCodec
};

/// Writes the base from which the codec measures worker w's move.
void setBase(std::initializer_list<Operand> base, std::size_t w, const Tensor& into, Slice slice,
             Context& context);

}  // namespace muster::detail
