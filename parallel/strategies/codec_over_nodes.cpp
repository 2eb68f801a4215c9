// The part of CodedReplicas in which a node sends for its workers.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "muster/parallel/exchange/tensor_parts.h"
#include "muster/parallel/strategies/coding.h"

namespace muster {

using namespace detail;

namespace {

std::span<std::byte> bytesIn(const Tensor& bytes) {
  return {static_cast<std::byte*>(bytes.raw()), bytes.bytes()};
}

constexpr std::int64_t kStep = 1024;  ///< elements whose sums stay in the L1 cache

/// The sum of the terms. Each product is rounded to float64 first, which gives the bits of HostExchange's
/// groups.
/// @param piece  at most kStep elements.
void addUpPiece(std::span<const Term> terms, const Tensor& into, Slice piece, Context& context) {
  alignas(64) std::array<double, kStep> sums, products;
  const Tensor sum = Tensor::view(sums.data(), {piece.length()}, DType::Float64),
               product = Tensor::view(products.data(), {piece.length()}, DType::Float64);
  for (const Term& term : terms) {
    const bool first = &term == &terms.front();
    const std::array one{Term{term.factor, part(term.values, piece)}};
    const std::array both{Term{1, sum}, Term{1, product}};
    linearCombination(one, first ? sum : product, 0, piece.length(), context);
    if (!first) linearCombination(both, sum, 0, piece.length(), context);
  }
  const std::array all{Term{1, sum}};
  linearCombination(all, part(into, piece), 0, piece.length(), context);
}

void addUp(std::span<const Term> terms, const Tensor& into, Slice slice, Context& context) {
  for (std::int64_t at = slice.begin; at < slice.end; at += kStep)
    atElement(at, "mean over nodes", [&] {
      addUpPiece(terms, into, {at, std::min(slice.end, at + kStep)}, context);
    });
}

}  // namespace

CodedMemory detail::codedMemory(std::span<const StrategyBlock> declared, bool together) {
  if (!std::ranges::any_of(declared, &StrategyBlock::encoded)) return {};
  const bool factors = std::ranges::find(declared, kFactors, &StrategyBlock::name) != declared.end();
  return {.any = true, .ofSender = together ? 1 : 0, .ofNode = factors ? 1 : 0, .ofOtherNode = 1};
}

void CodedReplicas::mean(std::span<const double> weights, std::initializer_list<Operand> base,
                         double remember, const Fragment& fragment, std::span<const Tensor> into,
                         MergeOps& ops, bool later) {
  if (whole()) return ops.mean(ops.block(BlockKind::Parameters).replicas, weights, into, fragment, 0, later);
  const auto sending = formSenders(weights, fragment, ops);
  if (!packed_.empty()) return gatherEncoded(sending, base, remember, fragment, into.front(), ops, later);
  const auto sent = send(sending, base, remember, fragment, ops);
  ops.mean(sent, sending, into, fragment);
}

void CodedReplicas::beginSenders(const Exchange& exchange) {
  const StrategyState& coded = exchange.strategyBlock(kCoded);
  const auto participants = static_cast<std::size_t>(exchange.participants());
  senders_ = coded.apart;
  ofSenders_.clear();
  if (senders_ == participants) return;
  senderWeights_.assign(participants, std::vector<double>(participants));
  terms_.resize(senders_);
  for (std::size_t s = 0; s < senders_; ++s) {
    terms_[s].reserve(participants / senders_);
    const Tensor& like = coded.values[s];
    ofSenders_.push_back(like.defined() ? Tensor::empty(like.shape(), like.dtype()) : like);
  }
}

/// @return [participant] the sum of a sender's weights for its first worker; 0 for the others.
std::span<const double> CodedReplicas::formSenders(std::span<const double> weights, const Fragment& fragment,
                                                   MergeOps& ops) {
  if (ofSenders_.empty()) return weights;
  auto& sums = senderWeights_[static_cast<std::size_t>(ops.participant())];
  std::ranges::fill(sums, 0);
  for (std::size_t w = 0; w < weights.size(); ++w) sums[w % senders_] += weights[w];
  const SharedBlock& parameters = ops.block(BlockKind::Parameters);
  ops.eachReplica(parameters.mergedCopy().elements(), [&](const Share& share) {
    for (const std::size_t s : share.workers) {
      if (sums[s] == 0) continue;
      auto& terms = terms_[s];
      terms.clear();
      for (std::size_t w = s; w < weights.size(); w += senders_)
        if (weights[w] > 0) terms.push_back({weights[w] / sums[s], viewOf(parameters.replicas[w])});
      for (const Slice slice : fragment.slices)
        linearCombination(terms, ofSenders_[s], slice.begin, slice.end, share.context);
    }
  });
  return sums;
}

void CodedReplicas::beginNodes(const Exchange& exchange, std::span<const Fragment> fragments) {
  const auto nodes = static_cast<std::size_t>(exchange.nodes());
  node_ = static_cast<std::size_t>(exchange.node());
  const Tensor& own = exchange.strategyBlock(kCoded).values[node_];
  decoded_.clear();
  for (std::size_t n = 0; n < nodes; ++n)
    decoded_.push_back(n == node_ ? own : Tensor::empty(own.shape(), own.dtype()));
  if (std::holds_alternative<PowerSgdCodec>(codec_)) {
    means_ = exchange.strategyBlock(kMeans).values.front();
    factors_ = Tensor::empty(own.shape(), own.dtype());
  }
  packed_.clear();
  for (const Fragment& fragment : fragments) {
    const Matrices* const matrices = findMatrices(fragment);
    std::int64_t size = bytesOf(matrices ? matrices->others : fragment);
    if (matrices) size += matrices->right.elements() * static_cast<std::int64_t>(sizeOf(own.dtype()));
    packed_.push_back({.fragment = &fragment,
                       .bytes = Tensor::zeros({static_cast<std::int64_t>(nodes) * size}, DType::UInt8)});
    packed_.back().terms.reserve(nodes);
  }
}

void CodedReplicas::gatherEncoded(std::span<const double> weights, Base base, double remember,
                                  const Fragment& fragment, const Tensor& into, MergeOps& ops, bool later) {
  Packed& packed = *std::ranges::find(packed_, &fragment, &Packed::fragment);
  const auto all = bytesIn(packed.bytes);
  const std::size_t size = all.size() / decoded_.size();
  const auto own = all.subspan(node_ * size, size);
  if (const Matrices* const matrices = findMatrices(fragment))
    sendMatrices(weights, base, remember, *matrices, ops, own);
  else
    sendSlices(weights, base, remember, fragment, ops, own);
  ops.eachReplica(into.elements(), [&](const Share& share) {
    if (share.workers.front() != node_) return;
    packed.weights.assign(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(decoded_.size()));
    packed.into = into;
    for (std::size_t n = 0; n < decoded_.size(); ++n)
      for (const Slice slice : fragment.slices)
        if (n != node_ && packed.weights[n] > 0) setBase(base, node_, decoded_[n], slice, share.context);
    ops.allGatherEncoded(
        all, packed.weights, [this, &packed](Context& context) { finish(packed, context); }, packed.into,
        later, share.context);
  });
  const auto participant = static_cast<std::size_t>(ops.participant());
  if (participant == node_ && weights[node_] > 0) ops.countBytes(static_cast<std::int64_t>(size));
}

void CodedReplicas::finish(Packed& packed, Context& context) {
  const double total = std::accumulate(packed.weights.begin(), packed.weights.end(), 0.0);
  packed.terms.clear();
  for (std::size_t n = 0; n < decoded_.size(); ++n) {
    if (packed.weights[n] == 0) continue;
    if (n != node_) unpack(packed, n, context);
    packed.terms.push_back({packed.weights[n] / total, viewOf(decoded_[n])});
  }
  for (const Slice slice : packed.fragment->slices) addUp(packed.terms, packed.into, slice, context);
}

/// Decodes a node's bytes into its tensor, which must hold the base.
void CodedReplicas::unpack(const Packed& packed, std::size_t node, Context& context) {
  const Tensor& decoded = decoded_[node];
  const auto all = bytesIn(packed.bytes);
  const std::size_t size = all.size() / decoded_.size();
  auto left = all.subspan(node * size, size);
  const auto take = [&](std::size_t bytes) {
    const auto taken = left.first(bytes);
    left = left.subspan(bytes);
    return taken;
  };
  const Matrices* const matrices = findMatrices(*packed.fragment);
  for (const Slice slice : (matrices ? matrices->others : *packed.fragment).slices) {
    const DeltaCoding coding = codingOf(slice);
    const auto bytes = codedBytes(coding, slice.length(), decoded.dtype());
    unpackDelta(coding, take(static_cast<std::size_t>(bytes)), decoded, slice.begin, slice.end, context);
  }
  for (const LowRankMatrix& matrix :
       matrices ? std::span(matrices->matrices) : std::span<const LowRankMatrix>()) {
    const Tensor q = part(factors_, {matrix.right(), matrix.end()});
    const auto bytes = take(q.bytes());
    std::memcpy(q.raw(), bytes.data(), bytes.size());
    decodeLowRank(matrix, decoded, means_, factors_, context);
  }
}

}  // namespace muster
