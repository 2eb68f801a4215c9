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

/// Encodes a fragment of the parameters as differences from a base, and decodes it.
class ReplicaCoder {
 public:
  ReplicaCoder(const Codec& codec, const SharedBlock& parameters, const Fragment& fragment);

  /// The bytes that a worker sends; they lack the factors of matrices, whose means count them.
  std::int64_t bytes() const { return static_cast<std::int64_t>(bytes_); }
  /// The bytes of Sending::packed.
  std::int64_t packedBytes() const {
    return bytes() + right_.elements() * static_cast<std::int64_t>(sizeOf(type_));
  }

  /// Encodes and decodes what each worker or sender of this participant sends: its block kCoded then holds
  /// what the others receive, and kResidual what was left out.
  void encode(const Sending& sending, MergeOps& ops) const;
  /// Decodes such bytes into `decoded`, which holds the base.
  /// @param means  the block kMeans of the merge. @param factors  memory of the parameters' size.
  void unpack(std::span<const std::byte> packed, const Tensor& decoded, const Tensor& means,
              const Tensor& factors, Context& context) const;

 private:
  /// Elements that are encoded one by one.
  struct Run {
    Slice slice;
    DeltaCoding coding;  // without Sending::remember
    std::size_t bytes;
  };
  void addRun(const Codec& codec, const SharedBlock& parameters, Slice slice);

  DType type_;  // of the parameters
  std::vector<Run> runs_;
  std::size_t bytes_ = 0;  // of the runs
  std::vector<LowRankMatrix> matrices_;
  Fragment left_, right_;  // factors of the matrices
};

}  // namespace muster::detail
