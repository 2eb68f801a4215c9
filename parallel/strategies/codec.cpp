#include "muster/parallel/strategies/codec.h"

#include <algorithm>
#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/ops/delta_coding.h"
#include "muster/parallel/strategies/option_fields.h"

namespace muster {
namespace {

constexpr std::string_view kCoded = "coded replicas", kResidual = "coding residual";

/// How so many elements are encoded.
struct CodingOf {
  std::int64_t elements;

  DeltaCoding operator()(const WholeReplicas&) const { return {}; }
  DeltaCoding operator()(const Bf16Codec&) const { return {.codec = DeltaCodec::Bf16}; }
  DeltaCoding operator()(const Int8Codec&) const { return {.codec = DeltaCodec::Int8}; }
  DeltaCoding operator()(const E3M0Codec&) const { return {.codec = DeltaCodec::E3M0}; }
  DeltaCoding operator()(const TopKCodec& topK) const {
    const double count = std::ceil(topK.share * static_cast<double>(elements));
    return {.codec = DeltaCodec::TopK, .largest = std::min(elements, static_cast<std::int64_t>(count))};
  }
};

}  // namespace

void validate(const Codec& codec, std::string_view rule) {
  if (const auto* topK = std::get_if<TopKCodec>(&codec))
    require(topK->share > 0 && topK->share <= 1, "{}: codec: share must lie in (0, 1], got {}", rule,
            topK->share);
}

std::string describe(const Codec& codec) {
  struct Name {
    std::string operator()(const WholeReplicas&) const { return ""; }
    std::string operator()(const Bf16Codec&) const { return "bf16"; }
    std::string operator()(const Int8Codec&) const { return "int8"; }
    std::string operator()(const E3M0Codec&) const { return "E3M0"; }
    std::string operator()(const TopKCodec& topK) const { return fmt::format("the largest {}", topK.share); }
  };
  const auto name = std::visit(Name(), codec);
  if (name.empty()) return name;
  return fmt::format(", sent as {} (which on one host costs time and saves nothing)", name);
}

void codecFields(Fields& fields, Codec& codec) {
  detail::variantField(fields, "codec", codec, {"whole", "bf16", "int8", "e3m0", "top-k"},
                       [](Fields& inside, auto& chosen) {
                         if constexpr (requires { chosen.share; }) inside.field("share", chosen.share);
                       });
}

void CodedReplicas::declare(std::vector<StrategyBlock>& blocks) const {
  if (whole()) return;
  blocks.push_back({.name = std::string(kCoded), .place = StrategyBlock::Place::Replica, .saved = false});
  blocks.push_back({.name = std::string(kResidual), .place = StrategyBlock::Place::Replica});
}

std::span<const Tensor> CodedReplicas::send(std::span<const double> weights,
                                            std::initializer_list<Operand> base, double remember,
                                            const Fragment& fragment, Verbs& verbs) const {
  const SharedBlock& parameters = verbs.block(BlockKind::Parameters);
  if (whole()) return parameters.replicas;
  const auto coded = verbs.own(kCoded), residual = verbs.own(kResidual);
  verbs.combine(coded, base, fragment);
  verbs.eachReplica(parameters.mergedCopy().elements(), [&](const Share& share) {
    for (const std::size_t w : share.workers) {
      if (weights[w] == 0) continue;
      for (const Slice slice : fragment.slices) {
        DeltaCoding coding = std::visit(CodingOf{slice.length()}, codec_);
        coding.remember = remember;
        codeDelta(coding, parameters.replicas[w], coded[w], residual[w], slice.begin, slice.end,
                  share.context);
      }
    }
  });
  const auto own = static_cast<std::size_t>(verbs.participant());
  if (verbs.participants() > 1 && weights[own] > 0)
    for (const Slice slice : fragment.slices)  // `mean` will count the whole replica
      verbs.countBytes(codedBytes(std::visit(CodingOf{slice.length()}, codec_), slice.length()) -
                       slice.length() * static_cast<std::int64_t>(sizeOf(coded[own].dtype())));
  return coded;
}

}  // namespace muster
