#include "muster/parallel/nodes/node_reduction.h"

#include <algorithm>
#include <numeric>

#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {
namespace {

constexpr std::int64_t kPiece = 1 << 13;  // elements that a node reduces at a time: messages of 64 KiB

/// The part of a piece that a node reduces.
Slice ownedBy(int node, Slice piece, int nodes) {
  const Slice own = sliceOf(piece.length(), node, nodes);
  return {piece.begin + own.begin, piece.begin + own.end};
}

constexpr std::string_view kOp = "mean over nodes";

}  // namespace

NodeReduction::Transfer::Transfer(int nodes)
    : there(2 * static_cast<std::size_t>(nodes)),
      back(2 * static_cast<std::size_t>(nodes)),
      sums(Tensor::empty({nodes * kPiece}, DType::Float64)),
      received(Tensor::empty({nodes * kPiece}, DType::Float64)) {}

NodeReduction::NodeReduction(NodeLink& link, int local, int channel)
    : link_(link),
      local_(local),
      channel_(channel),
      transfers_{Transfer(link.nodes()), Transfer(link.nodes())},
      views_(static_cast<std::size_t>(local)) {
  terms_.reserve(static_cast<std::size_t>(std::max(link.nodes(), local)) + 1);
}

bool NodeReduction::contributes(const NodeMean& mean, int node) const {
  for (int l = 0; l < local_; ++l)
    if (mean.weights[worker(node, l)] > 0) return true;
  return false;
}

void NodeReduction::run(const NodeMean& mean, Slice own, Context& context) {
  total_ = std::accumulate(mean.weights.begin(), mean.weights.end(), 0.0);
  context_ = &context;
  const std::int64_t step = kPiece * link_.nodes(), count = (own.length() + step - 1) / step;
  const auto transfer = [&](std::int64_t i) -> Transfer& {
    return transfers_[static_cast<std::size_t>(i % 2)];
  };
  for (std::int64_t i = 0; i < count + 2; ++i) {
    const std::int64_t at = own.begin + i * step;
    if (i >= 2) finish(mean, transfer(i - 2));
    if (i < count) scatter(mean, transfer(i), {at, std::min(own.end, at + step)});
    if (i >= 1 && i <= count) addUp(mean, transfer(i - 1));
  }
}

/// The float64 sum of a node's weighted tensors. @param tensors  [local worker] the same elements of each.
void NodeReduction::addWorkers(const NodeMean& mean, int node, std::span<const Tensor> tensors,
                               const Tensor& into) {
  terms_.clear();
  for (int l = 0; l < local_; ++l)
    if (const double weight = mean.weights[worker(node, l)]; weight > 0)
      terms_.push_back({(1 - mean.keep) * (weight / total_), tensors[static_cast<std::size_t>(l)]});
  linearCombination(terms_, into, 0, into.elements(), *context_);
}

void NodeReduction::scatter(const NodeMean& mean, Transfer& transfer, Slice piece) {
  const int node = link_.node();
  transfer.piece = piece;
  transfer.there.clear();
  const std::int64_t own = ownedBy(node, piece, link_.nodes()).length();
  for (int from = 0; from < link_.nodes(); ++from)
    if (from != node && contributes(mean, from))
      transfer.there.receive(
          from, channel_,
          bytesOf(viewAt(transfer.received.slice(from * kPiece, {kPiece}), 0, own, typeSent(mean))));
  for (int to = 0; to < link_.nodes() && contributes(mean, node); ++to) {
    const Slice share = ownedBy(to, piece, link_.nodes());
    if (share.length() == 0) continue;
    for (int l = 0; l < local_; ++l)
      views_[static_cast<std::size_t>(l)] = part(mean.tensors[worker(node, l)], share);
    const Tensor sum = transfer.sums.slice(to * kPiece, {share.length()});
    const bool asItIs = local_ == 1 && to != node;
    if (!asItIs) atElement(share.begin, kOp, [&] { addWorkers(mean, node, views_, sum); });
    if (to != node) transfer.there.send(to, channel_, bytesOf(asItIs ? views_.front() : sum));
  }
  link_.begin(transfer.there);
}

void NodeReduction::addUp(const NodeMean& mean, Transfer& transfer) {
  link_.wait(transfer.there);
  const int node = link_.node();
  const Slice own = ownedBy(node, transfer.piece, link_.nodes());
  const Tensor result = part(mean.into, own);
  const auto ofNode = [&](const Tensor& all, int n) { return all.slice(n * kPiece, {own.length()}); };
  if (own.length() > 0) {
    for (int n = 0; n < link_.nodes() && local_ == 1; ++n)
      if (n != node && contributes(mean, n)) {
        views_.front() = viewAt(ofNode(transfer.received, n), 0, own.length(), typeSent(mean));
        atElement(own.begin, kOp, [&] { addWorkers(mean, n, views_, ofNode(transfer.sums, n)); });
      }
    terms_.clear();
    for (int n = 0; n < link_.nodes(); ++n)
      if (contributes(mean, n))
        terms_.push_back({1, ofNode(local_ == 1 || n == node ? transfer.sums : transfer.received, n)});
    if (mean.keep > 0) terms_.push_back({mean.keep, result});
    atElement(own.begin, kOp, [&] { linearCombination(terms_, result, 0, own.length(), *context_); });
  }
  transfer.back.clear();
  for (int n = 0; n < link_.nodes(); ++n) {
    if (n == node) continue;
    transfer.back.send(n, channel_, bytesOf(result));
    transfer.back.receive(n, channel_, bytesOf(part(mean.into, ownedBy(n, transfer.piece, link_.nodes()))));
  }
  link_.begin(transfer.back);
}

void NodeReduction::finish(const NodeMean& mean, Transfer& transfer) {
  link_.wait(transfer.back);
  const Tensor result = part(mean.into, transfer.piece);
  for (int l = 0; l < local_ && !mean.copies.empty(); ++l)
    copyOnHost(part(mean.copies[worker(link_.node(), l)], transfer.piece), result);
}

}  // namespace muster
