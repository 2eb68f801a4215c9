#pragma once

#include <array>
#include <cmath>
#include <initializer_list>
#include <span>
#include <string_view>

#include "muster/core/ops/delta_coding.h"
#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/strategies/codec.h"

// For the sources of CodedReplicas.

namespace muster::detail {

inline constexpr std::string_view kCoded = "coded replicas", kResidual = "coding residual",
                                  kFactors = "factors", kMeans = "mean factors";

/// The memory of CodedReplicas beside the blocks that it declares, in blocks of the parameters' size.
struct CodedMemory {
  bool any = false;              ///< the rule has a codec, and each sender sends once
  std::int64_t ofSender = 0;     ///< for each sender of this process
  std::int64_t ofNode = 0;       ///< over nodes, for this node
  std::int64_t ofOtherNode = 0;  ///< over nodes, for each other node
};
/// @param together  whether a sender sends for several workers.
CodedMemory codedMemory(std::span<const StrategyBlock> declared, bool together);

/// The coding of a run of `elements` elements, of which `real` are of tensors, and the others padding.
struct CodingOf {
  std::int64_t elements, real;

  DeltaCoding operator()(const WholeReplicas&) const { return {}; }
  DeltaCoding operator()(const Bf16Codec&) const { return {.codec = DeltaCodec::Bf16}; }
  DeltaCoding operator()(const Int8Codec&) const { return {.codec = DeltaCodec::Int8}; }
  DeltaCoding operator()(const E3M0Codec&) const { return {.codec = DeltaCodec::E3M0}; }
  DeltaCoding operator()(const TopKCodec& topK) const {
    const double count = std::ceil(topK.share * static_cast<double>(real));
    const bool all = count >= static_cast<double>(real);  // then no positions are sent
    return {.codec = DeltaCodec::TopK, .largest = all ? elements : static_cast<std::int64_t>(count)};
  }
  /// For the parts that are not matrices.
  DeltaCoding operator()(const PowerSgdCodec&) const {
    return {.codec = DeltaCodec::TopK, .largest = elements};
  }
};

/// Writes the base from which the codec measures worker w's move.
inline void setBase(std::initializer_list<Operand> base, std::size_t w, const Tensor& into, Slice slice,
                    Context& context) {
  std::array<Term, 4> terms;
  std::size_t count = 0;
  for (const auto& [factor, values] : base) terms.at(count++) = {factor, values[w]};
  linearCombination(std::span(terms).first(count), into, slice.begin, slice.end, context);
}

}  // namespace muster::detail
