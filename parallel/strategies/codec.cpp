#include "muster/parallel/strategies/codec.h"

#include <algorithm>
#include <cstring>

#include "muster/core/base/error.h"
#include "muster/parallel/exchange/tensor_parts.h"
#include "muster/parallel/strategies/coding.h"
#include "muster/parallel/strategies/option_fields.h"

namespace muster {

using namespace detail;
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
                                        "share of the elements that is sent, above 0, at most 1");
                         if constexpr (requires { chosen.rank; })
                           inside.field("rank", chosen.rank, "rank of the factors, 1 to 32");
                       });
}

void CodedReplicas::declare(std::vector<StrategyBlock>& blocks, bool means) const {
  if (whole()) return;
  const auto place = means ? StrategyBlock::Place::Node : StrategyBlock::Place::Replica;
  blocks.push_back({.name = std::string(kCoded), .place = place, .saved = false, .encoded = means});
  blocks.push_back({.name = std::string(kResidual), .place = place, .meanForOthers = true});
  if (!std::holds_alternative<PowerSgdCodec>(codec_)) return;
  blocks.push_back({.name = std::string(kFactors), .place = place, .saved = false});
  blocks.push_back({.name = std::string(kMeans)});
}

void CodedReplicas::begin(const Exchange& exchange, std::span<const Fragment> fragments) {
  if (!whole()) {
    sent_ = exchange.block(BlockKind::Parameters);
    sent_.replicas = exchange.strategyBlock(kCoded).values;
  }
  matrices_.clear();
  if (const auto* power = std::get_if<PowerSgdCodec>(&codec_))
    for (const Fragment& fragment : fragments)
      matrices_.push_back(
          matricesOf(exchange.block(BlockKind::Parameters).segments.get(), fragment, power->rank));
  if (whole()) return;
  beginSenders(exchange);
  if (exchange.nodes() > 1) beginNodes(exchange, fragments);
}

CodedReplicas::Matrices CodedReplicas::matricesOf(const SegmentTable* segments, const Fragment& fragment,
                                                  std::int64_t rank) const {
  Matrices all{.fragment = &fragment, .matrices = {}, .left = {}, .right = {}, .others = {}};
  for (const Slice slice : fragment.slices) {
    std::int64_t done = slice.begin;  // elements before it are in matrices or others
    for (const Segment& segment : segments ? std::span(segments->segments) : std::span<const Segment>()) {
      const std::int64_t elements = segment.shape.elements();
      if (segment.offset < slice.begin || segment.offset + elements > slice.end || segment.shape.rank() < 2)
        continue;
      const LowRankMatrix matrix{.offset = segment.offset,
                                 .rows = segment.shape[0],
                                 .columns = elements / std::max<std::int64_t>(1, segment.shape[0]),
                                 .rank = rank};
      if (elements == 0 || rank * (matrix.rows + matrix.columns) >= elements) continue;
      if (done < segment.offset) all.others.slices.push_back({done, segment.offset});
      done = segment.offset + elements;
      all.matrices.push_back(matrix);
      all.left.slices.push_back({matrix.offset, matrix.right()});
      all.right.slices.push_back({matrix.right(), matrix.end()});
    }
    if (done < slice.end) all.others.slices.push_back({done, slice.end});
  }
  return all;
}

std::span<const Tensor> CodedReplicas::send(std::span<const double> weights,
                                            std::initializer_list<Operand> base, double remember,
                                            const Fragment& fragment, MergeOps& ops) const {
  const SharedBlock& parameters = ops.block(BlockKind::Parameters);
  if (whole()) return parameters.replicas;
  const auto coded = ops.own(kCoded);
  const Matrices* const matrices = findMatrices(fragment);
  const std::int64_t bytes = matrices == nullptr ? sendSlices(weights, base, remember, fragment, ops)
                                                 : sendMatrices(weights, base, remember, *matrices, ops);
  const auto own = static_cast<std::size_t>(ops.participant());
  if (ops.participants() > 1 && weights[own] > 0)  // the mean of `coded` counts whole replicas
    ops.countBytes(bytes - fragment.elements() * static_cast<std::int64_t>(sizeOf(coded[own].dtype())));
  return coded;
}

const CodedReplicas::Matrices* CodedReplicas::findMatrices(const Fragment& fragment) const {
  const auto found = std::ranges::find(matrices_, &fragment, &Matrices::fragment);
  return found == matrices_.end() ? nullptr : &*found;
}

std::int64_t CodedReplicas::bytesOf(const Fragment& fragment) const {
  std::int64_t bytes = 0;
  for (const Slice slice : fragment.slices)
    bytes += codedBytes(codingOf(slice), slice.length(), sent_.mergedCopy().dtype());
  return bytes;
}

DeltaCoding CodedReplicas::codingOf(Slice slice) const {
  if (!sent_.segments) return std::visit(CodingOf{slice.length(), slice.length()}, codec_);
  std::int64_t real = 0;
  for (const Segment& segment : sent_.segments->segments) {
    const std::int64_t end = segment.offset + segment.shape.elements();
    real += std::max<std::int64_t>(0, std::min(end, slice.end) - std::max(segment.offset, slice.begin));
  }
  return std::visit(CodingOf{slice.length(), real}, codec_);
}

std::int64_t CodedReplicas::sendSlices(std::span<const double> weights, Base base, double remember,
                                       const Fragment& fragment, MergeOps& ops,
                                       std::span<std::byte> packed) const {
  const SharedBlock& parameters = ops.block(BlockKind::Parameters);
  const auto coded = ops.own(kCoded), residual = ops.own(kResidual);
  ops.eachReplica(parameters.mergedCopy().elements(), [&](const Share& share) {
    for (const std::size_t w : share.workers) {
      if (weights[w] == 0) continue;
      const Tensor& values = valuesOf(w, parameters);
      std::size_t done = 0;
      for (const Slice slice : fragment.slices) {
        DeltaCoding coding = codingOf(slice);
        coding.remember = remember;
        setBase(base, w, coded[w], slice, share.context);
        if (packed.empty()) {
          codeDelta(coding, values, coded[w], residual[w], slice.begin, slice.end, share.context);
          continue;
        }
        const auto bytes = static_cast<std::size_t>(codedBytes(coding, slice.length(), values.dtype()));
        packDelta(coding, values, coded[w], residual[w], slice.begin, slice.end, packed.subspan(done, bytes),
                  share.context);
        done += bytes;
      }
    }
  });
  return bytesOf(fragment);
}

/// The returned bytes lack the factors: the means of these count them.
std::int64_t CodedReplicas::sendMatrices(std::span<const double> weights, Base base, double remember,
                                         const Matrices& matrices, MergeOps& ops,
                                         std::span<std::byte> packed) const {
  const SharedBlock& parameters = ops.block(BlockKind::Parameters);
  const auto coded = ops.own(kCoded), residual = ops.own(kResidual);
  const auto factors = ops.own(kFactors), means = ops.own(kMeans);
  const auto others = static_cast<std::size_t>(bytesOf(matrices.others));
  sendSlices(weights, base, remember, matrices.others, ops, packed.first(packed.empty() ? 0 : others));
  const auto forEach = [&](auto use) {
    ops.eachReplica(parameters.mergedCopy().elements(), [&](const Share& share) {
      for (const std::size_t w : share.workers)
        if (weights[w] > 0)
          for (const LowRankMatrix& matrix : matrices.matrices) use(matrix, w, share.context);
    });
  };
  forEach([&](const LowRankMatrix& matrix, std::size_t w, Context& context) {
    setBase(base, w, coded[w], {matrix.offset, matrix.offset + matrix.rows * matrix.columns}, context);
    projectDelta(matrix, valuesOf(w, parameters), coded[w], residual[w], means[w], factors[w], context);
  });
  ops.mean(factors, weights, means, matrices.left);
  std::size_t done = others;
  forEach([&](const LowRankMatrix& matrix, std::size_t w, Context& context) {
    codeLowRank(matrix, remember, valuesOf(w, parameters), coded[w], residual[w], means[w], factors[w],
                context);
    if (packed.empty()) return;
    const Tensor q = part(factors[w], {matrix.right(), matrix.end()});
    std::memcpy(packed.data() + done, q.raw(), q.bytes());
    done += q.bytes();
  });
  ops.mean(factors, weights, means, matrices.right);
  return matrices.others.elements() * static_cast<std::int64_t>(sizeOf(parameters.mergedCopy().dtype()));
}

}  // namespace muster
