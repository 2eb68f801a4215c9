#include "muster/parallel/strategies/codec.h"

#include "muster/core/ops/low_rank.h"
#include "muster/parallel/strategies/option_fields.h"

namespace muster {

void validate(const Codec& codec, std::string_view rule) {
  if (const auto* topK = std::get_if<TopKCodec>(&codec))
    require(topK->share > 0 && topK->share <= 1, "{}: codec: share must be in (0, 1], got {}", rule,
            topK->share);
  if (const auto* power = std::get_if<PowerSgdCodec>(&codec))
    require(power->rank >= 1 && power->rank <= LowRankMatrix::kMostRank,
            "{}: codec: rank must be between 1 and {}, got {}", rule, LowRankMatrix::kMostRank, power->rank);
}

void requireSentToSome(const Codec& codec, std::string_view merge) {
  require(
      !std::holds_alternative<PowerSgdCodec>(codec),
      "{}: codec cannot be power-sgd, whose factors are means over all workers, where only some are merged",
      merge);
}

std::string describe(const Codec& codec) {
  struct Name {
    std::string operator()(const WholeReplicas&) const { return ""; }
    std::string operator()(const Bf16Codec&) const { return "bf16"; }
    std::string operator()(const Int8Codec&) const { return "int8"; }
    std::string operator()(const E3M0Codec&) const { return "E3M0"; }
    std::string operator()(const TopKCodec& topK) const { return fmt::format("the largest {}", topK.share); }
    std::string operator()(const PowerSgdCodec& power) const {
      return fmt::format("matrices of rank {}", power.rank);
    }
  };
  const auto name = std::visit(Name(), codec);
  if (name.empty()) return name;
  return fmt::format(", sent as {} (which costs time, and saves bytes over a network only)", name);
}

void codecFields(Fields& fields, Codec& codec) {
  fields.describe(
      "how parameters are sent: whole, bf16, int8, e3m0, top-k (with codec.share) or power-sgd (with "
      "codec.rank)");
  detail::variantField(fields, "codec", codec, {"whole", "bf16", "int8", "e3m0", "top-k", "power-sgd"},
                       [](Fields& inside, auto& chosen) {
                         if constexpr (requires { chosen.share; })
                           inside.field("share", chosen.share,
                                        "share of the elements that is sent, above 0, at most 1", "(0, 1]");
                         if constexpr (requires { chosen.rank; })
                           inside.field("rank", chosen.rank, "rank of the factors, 1 to 32", "[1, 32]");
                       });
}

}  // namespace muster
