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
  const StrategyState& coded = exchange.strategyBlock(kCoded);
  sent_ = exchange.block(BlockKind::Parameters);
  fragments_.clear();
  for (const Fragment& fragment : fragments)
    fragments_.push_back({.fragment = &fragment, .coder = ReplicaCoder(codec_, sent_, fragment)});
  sent_.replicas = coded.values;
  const auto like = [](const Tensor& block) { return Tensor::empty(block.shape(), block.dtype()); };
  const auto participants = static_cast<std::size_t>(exchange.participants());
  const auto nodes = static_cast<std::size_t>(exchange.nodes());
  means_.clear();
  if (coded.apart < participants) weights_.assign(participants, std::vector<double>(participants));
  terms_.resize(coded.apart);
  for (std::size_t s = 0; s < coded.apart && coded.apart < participants; ++s) {
    terms_[s].reserve(participants / coded.apart);
    means_.push_back(coded.values[s].defined() ? like(coded.values[s]) : Tensor());
  }
  if (nodes == 1) return;
  node_ = static_cast<std::size_t>(exchange.node());
  const Tensor& own = coded.values[node_];
  decoded_.clear();
  for (std::size_t n = 0; n < nodes; ++n) decoded_.push_back(n == node_ ? own : like(own));
  if (std::holds_alternative<PowerSgdCodec>(codec_)) {
    meanFactors_ = exchange.strategyBlock(kMeans).values.front();
    receivedFactors_ = like(own);
  }
  for (Sent& sent : fragments_)
    sent.packed = Tensor::zeros({static_cast<std::int64_t>(nodes) * sent.coder.packedBytes()}, DType::UInt8);
}

std::span<const double> CodedReplicas::formMeans(std::span<const double> weights, const Fragment& fragment,
                                                 MergeOps& ops) {
  if (means_.empty()) return weights;
  const std::size_t senders = means_.size();
  auto& sums = weights_[static_cast<std::size_t>(ops.participant())];
  std::ranges::fill(sums, 0);
  for (std::size_t w = 0; w < weights.size(); ++w) sums[w % senders] += weights[w];
  const SharedBlock& parameters = ops.block(BlockKind::Parameters);
  ops.eachReplica(parameters.mergedCopy().elements(), [&](const Share& share) {
    for (const std::size_t s : share.workers) {
      if (sums[s] == 0) continue;
      auto& terms = terms_[s];
      terms.clear();
      for (std::size_t w = s; w < weights.size(); w += senders)
        if (weights[w] > 0) terms.push_back({weights[w] / sums[s], viewOf(parameters.replicas[w])});
      for (const Slice slice : fragment.slices)
        linearCombination(terms, means_[s], slice.begin, slice.end, share.context);
    }
  });
  return sums;
}

std::span<const Tensor> CodedReplicas::values(MergeOps& ops) const {
  return means_.empty() ? std::span(ops.block(BlockKind::Parameters).replicas) : std::span(means_);
}

void CodedReplicas::mean(std::span<const double> weights, Base base, double remember,
                         const Fragment& fragment, std::span<const Tensor> into, MergeOps& ops, bool later) {
  if (whole()) return ops.mean(ops.block(BlockKind::Parameters).replicas, weights, into, fragment, 0, later);
  const auto sending = formMeans(weights, fragment, ops);
  if (!decoded_.empty()) return gatherEncoded(sending, base, remember, fragment, into.front(), ops, later);
  ops.mean(send(sending, base, remember, fragment, ops), sending, into, fragment);
}

std::span<const Tensor> CodedReplicas::send(std::span<const double> weights, Base base, double remember,
                                            const Fragment& fragment, MergeOps& ops) const {
  if (whole()) return ops.block(BlockKind::Parameters).replicas;
  const auto coded = ops.own(kCoded);
  const ReplicaCoder& coder = std::ranges::find(fragments_, &fragment, &Sent::fragment)->coder;
  coder.encode({weights, values(ops), base, remember}, ops);
  const auto own = static_cast<std::size_t>(ops.participant());
  if (ops.participants() > 1 && weights[own] > 0)  // the mean of `coded` counts whole replicas
    ops.countBytes(coder.bytes() -
                   fragment.elements() * static_cast<std::int64_t>(sizeOf(coded[own].dtype())));
  return coded;
}

std::span<std::byte> CodedReplicas::Sent::packedOf(std::size_t node, std::size_t nodes) const {
  const auto all = bytesOf(packed);
  return all.subspan(node * (all.size() / nodes), all.size() / nodes);
}

void CodedReplicas::gatherEncoded(std::span<const double> weights, Base base, double remember,
                                  const Fragment& fragment, const Tensor& into, MergeOps& ops, bool later) {
  Sent& sent = *std::ranges::find(fragments_, &fragment, &Sent::fragment);
  const std::size_t nodes = decoded_.size();
  const auto own = sent.packedOf(node_, nodes);
  sent.coder.encode({weights, values(ops), base, remember, own}, ops);
  ops.eachReplica(into.elements(), [&](const Share& share) {
    if (share.workers.front() != node_) return;
    sent.weights.assign(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(nodes));
    sent.into = into;
    for (std::size_t n = 0; n < nodes; ++n)
      for (const Slice slice : sent.fragment->slices)
        if (n != node_ && sent.weights[n] > 0) combineOf(node_, base, decoded_[n], slice, share.context);
    ops.allGatherEncoded(
        bytesOf(sent.packed), sent.weights, [this, &sent](Context& context) { finish(sent, context); },
        sent.into, later, share.context);
  });
  const auto participant = static_cast<std::size_t>(ops.participant());
  if (participant == node_ && weights[node_] > 0) ops.countBytes(static_cast<std::int64_t>(own.size()));
}

/// Decodes what the other nodes have sent, and forms the mean.
void CodedReplicas::finish(const Sent& sent, Context& context) const {
  const std::size_t nodes = decoded_.size();
  const double total = std::accumulate(sent.weights.begin(), sent.weights.end(), 0.0);
  for (std::size_t n = 0; n < nodes; ++n)
    if (n != node_ && sent.weights[n] > 0)
      sent.coder.unpack(sent.packedOf(n, nodes), decoded_[n], meanFactors_, receivedFactors_, context);
  std::array<Term, 1> term;
  const auto termsOf = [&](std::size_t n, Slice piece) {
    if (sent.weights[n] == 0) return std::span<const Term>();
    term.front() = {sent.weights[n] / total, part(decoded_[n], piece)};
    return std::span<const Term>(term);
  };
  for (const Slice slice : sent.fragment->slices)
    addGroups("mean over nodes", nodes, termsOf, 0, sent.into, slice, context);
}

}  // namespace muster
