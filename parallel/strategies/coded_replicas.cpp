#include "muster/parallel/strategies/coded_replicas.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "muster/parallel/exchange/grouped_sum.h"
#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {

using namespace detail;

CodedMemory detail::codedMemory(std::span<const StrategyBlock> declared, bool together) {
  if (!std::ranges::any_of(declared, &StrategyBlock::encoded)) return {};
  const bool factors = std::ranges::find(declared, kFactors, &StrategyBlock::name) != declared.end();
  return {.any = true, .ofSender = together ? 1 : 0, .ofNode = factors ? 1 : 0, .ofOtherNode = 1};
}

void SenderMeans::begin(const StrategyState& coded, std::size_t participants) {
  senders_ = coded.apart;
  means_.clear();
  if (senders_ == participants) return;
  weights_.assign(participants, std::vector<double>(participants));
  terms_.resize(senders_);
  for (std::size_t s = 0; s < senders_; ++s) {
    terms_[s].reserve(participants / senders_);
    const Tensor& like = coded.values[s];
    means_.push_back(like.defined() ? Tensor::empty(like.shape(), like.dtype()) : like);
  }
}

std::span<const double> SenderMeans::form(std::span<const double> weights, const Fragment& fragment,
                                          MergeOps& ops) {
  if (means_.empty()) return weights;
  auto& sums = weights_[static_cast<std::size_t>(ops.participant())];
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
        linearCombination(terms, means_[s], slice.begin, slice.end, share.context);
    }
  });
  return sums;
}

std::span<const Tensor> SenderMeans::values(MergeOps& ops) const {
  return means_.empty() ? std::span(ops.block(BlockKind::Parameters).replicas) : std::span(means_);
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
  if (whole()) return;
  sent_ = exchange.block(BlockKind::Parameters);
  coder_.begin(sent_, fragments);
  const StrategyState& coded = exchange.strategyBlock(kCoded);
  sent_.replicas = coded.values;
  senders_.begin(coded, static_cast<std::size_t>(exchange.participants()));
  if (exchange.nodes() > 1) beginNodes(exchange, fragments);
}

void CodedReplicas::mean(std::span<const double> weights, Base base, double remember,
                         const Fragment& fragment, std::span<const Tensor> into, MergeOps& ops, bool later) {
  if (whole()) return ops.mean(ops.block(BlockKind::Parameters).replicas, weights, into, fragment, 0, later);
  const auto sending = senders_.form(weights, fragment, ops);
  if (!packed_.empty()) return gatherEncoded(sending, base, remember, fragment, into.front(), ops, later);
  ops.mean(send(sending, base, remember, fragment, ops), sending, into, fragment);
}

std::span<const Tensor> CodedReplicas::send(std::span<const double> weights, Base base, double remember,
                                            const Fragment& fragment, MergeOps& ops) const {
  if (whole()) return ops.block(BlockKind::Parameters).replicas;
  const auto coded = ops.own(kCoded);
  const std::int64_t bytes = coder_.encode({weights, senders_.values(ops), base, remember}, fragment, ops);
  const auto own = static_cast<std::size_t>(ops.participant());
  if (ops.participants() > 1 && weights[own] > 0)  // the mean of `coded` counts whole replicas
    ops.countBytes(bytes - fragment.elements() * static_cast<std::int64_t>(sizeOf(coded[own].dtype())));
  return coded;
}

std::span<std::byte> CodedReplicas::Packed::of(std::size_t node, std::size_t nodes) const {
  const auto all = bytesOf(bytes);
  return all.subspan(node * (all.size() / nodes), all.size() / nodes);
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
    const auto bytes = static_cast<std::int64_t>(nodes) * coder_.packedBytes(fragment);
    packed_.push_back({.fragment = &fragment, .bytes = Tensor::zeros({bytes}, DType::UInt8)});
  }
}

void CodedReplicas::gatherEncoded(std::span<const double> weights, Base base, double remember,
                                  const Fragment& fragment, const Tensor& into, MergeOps& ops, bool later) {
  Packed& packed = *std::ranges::find(packed_, &fragment, &Packed::fragment);
  const auto own = packed.of(node_, decoded_.size());
  coder_.encode({weights, senders_.values(ops), base, remember, own}, fragment, ops);
  ops.eachReplica(into.elements(), [&](const Share& share) {
    if (share.workers.front() != node_) return;
    packed.weights.assign(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(decoded_.size()));
    packed.into = into;
    for (std::size_t n = 0; n < decoded_.size(); ++n)
      for (const Slice slice : fragment.slices)
        if (n != node_ && packed.weights[n] > 0) setBase(base, node_, decoded_[n], slice, share.context);
    ops.allGatherEncoded(
        bytesOf(packed.bytes), packed.weights, [this, &packed](Context& context) { finish(packed, context); },
        packed.into, later, share.context);
  });
  const auto participant = static_cast<std::size_t>(ops.participant());
  if (participant == node_ && weights[node_] > 0) ops.countBytes(static_cast<std::int64_t>(own.size()));
}

/// Decodes what the other nodes have sent, and forms the mean.
void CodedReplicas::finish(const Packed& packed, Context& context) const {
  const double total = std::accumulate(packed.weights.begin(), packed.weights.end(), 0.0);
  for (std::size_t n = 0; n < decoded_.size(); ++n)
    if (n != node_ && packed.weights[n] > 0)
      coder_.unpack(*packed.fragment, packed.of(n, decoded_.size()), decoded_[n], means_, factors_, context);
  std::array<Term, 1> term;
  const auto termsOf = [&](std::size_t n, Slice piece) {
    if (packed.weights[n] == 0) return std::span<const Term>();
    term.front() = {packed.weights[n] / total, part(decoded_[n], piece)};
    return std::span<const Term>(term);
  };
  for (const Slice slice : packed.fragment->slices)
    addGroups("mean over nodes", decoded_.size(), termsOf, 0, packed.into, slice, context);
}

}  // namespace muster
