#include "muster/parallel/nodes/node_mixing.h"

#include <algorithm>
#include <span>

#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {
namespace {

constexpr std::size_t kMessageBytes = 1 << 16;   // as in a reduction
constexpr std::size_t kTransferBytes = 1 << 19;  // eight replicas at a time in full messages
constexpr std::int64_t kAlignment = 16;          // elements: two pieces share no cache line

/// A part of the index-th replica in a transfer's memory.
Tensor receivedPart(const Tensor& received, std::int64_t index, const SharedBlock& block, int p,
                    std::int64_t length) {
  return viewAt(received, (index * block.parts() + p) * length, length, block.replicas.front().dtype());
}

}  // namespace

NodeMixing::NodeMixing(NodeLink& link, int local, int channel)
    : link_(link),
      workers_(static_cast<std::size_t>(local * link.nodes())),
      channel_(channel),
      mixer_(workers_),
      merged_(workers_, 0),
      reads_(workers_ * static_cast<std::size_t>(link.nodes())) {
  for (int l = 0; l < local; ++l) here_.push_back(static_cast<std::size_t>(l * link.nodes() + link.node()));
  for (Transfer& transfer : transfers_)
    transfer.received = Tensor::empty({static_cast<std::int64_t>(kTransferBytes)}, DType::UInt8);
}

void NodeMixing::run(const SharedBlock& block, const Mixing& mixing, Slice own, Context& context) {
  if (own.length() == 0) return;
  findReads(block, mixing);
  const std::int64_t step = elementsAtATime(block), count = (own.length() + step - 1) / step;
  const auto transfer = [&](std::int64_t i) -> Transfer& {
    return transfers_[static_cast<std::size_t>(i % 2)];
  };
  for (std::int64_t i = 0; i <= count; ++i) {
    const std::int64_t at = own.begin + i * step;
    if (i < count) send(block, transfer(i), {at, std::min(own.end, at + step)});
    if (i > 0) form(block, mixing, transfer(i - 1), context);
  }
}

void NodeMixing::merge(const SharedBlock& block, std::span<const double> weights, Slice own,
                       Context& context) {
  merged_.setMerged(weights);
  run(block, merged_, own, context);
  for (int p = 0; p < 2; ++p)
    for (const std::size_t w : here_) {
      const Slice slice = inPart(own, p, block.elementsOfPart());
      copyOnHost(part(block.replicas[w], slice), part(block.mergedCopy(), slice));
    }
}

void NodeMixing::findReads(const SharedBlock& block, const Mixing& mixing) {
  std::ranges::fill(reads_, 0);
  const auto read = [&](int node, std::size_t worker) {
    if (nodeOf(worker) != node) reads_[static_cast<std::size_t>(node) * workers_ + worker] = 1;
  };
  for (std::size_t w = 0; w < workers_; ++w)
    for (const MixingShare& share : mixing.row(w)) read(nodeOf(w), share.worker);
  // The merged copy of moments is formed from the replicas, on every node.
  for (std::size_t w = 0; w < mixing.merged().size() && block.parts() == 2; ++w)
    if (mixing.merged()[w] > 0)
      for (int n = 0; n < link_.nodes(); ++n) read(n, w);
  mostRead_ = 0;
  for (int n = 0; n < link_.nodes(); ++n) {
    const auto readsOfNode = std::span(reads_).subspan(static_cast<std::size_t>(n) * workers_, workers_);
    mostRead_ = std::max(mostRead_, static_cast<std::size_t>(std::ranges::count(readsOfNode, 1)));
  }
}

/// The number of elements in a message. All nodes must compute the same, since sender and receiver must
/// agree.
std::int64_t NodeMixing::elementsAtATime(const SharedBlock& block) const {
  const std::size_t size = sizeOf(block.replicas.front().dtype());
  const std::size_t inTransfer =
      kTransferBytes / (std::max<std::size_t>(1, mostRead_) * static_cast<std::size_t>(block.parts()) * size);
  const auto most = static_cast<std::int64_t>(std::min(kMessageBytes / size, inTransfer));
  require(most >= kAlignment, "mix: {} workers are too many", workers_);
  return most / kAlignment * kAlignment;
}

/// Begins to send a piece of this node's replicas, and to receive those of other nodes.
void NodeMixing::send(const SharedBlock& block, Transfer& transfer, Slice piece) {
  transfer.piece = piece;
  transfer.call.clear();
  std::int64_t received = 0;
  for (std::size_t w = 0; w < workers_; ++w) {
    const int from = nodeOf(w);
    if (from == link_.node()) {
      for (int to = 0; to < link_.nodes(); ++to)
        for (int p = 0; reads(to, w) && p < block.parts(); ++p)
          transfer.call.send(to, channel_,
                             bytesOf(part(block.replicas[w], inPart(piece, p, block.elementsOfPart()))));
    } else if (reads(link_.node(), w)) {
      for (int p = 0; p < block.parts(); ++p)
        transfer.call.receive(from, channel_,
                              bytesOf(receivedPart(transfer.received, received, block, p, piece.length())));
      ++received;
    }
  }
  link_.begin(transfer.call);
}

/// Forms the rows of a piece once it has arrived, and its own replicas have been sent.
void NodeMixing::form(const SharedBlock& block, const Mixing& mixing, Transfer& transfer, Context& context) {
  link_.wait(transfer.call);
  const bool mergesMoments = block.parts() == 2 && block.hasMergedCopy() && !mixing.merged().empty();
  const Slice piece = transfer.piece;
  mixer_.inPieces(block, transfer.piece, context, [&](Slice slice) {
    std::int64_t received = 0;
    for (std::size_t w = 0; w < workers_; ++w) {
      if (nodeOf(w) == link_.node()) mixer_.read(w);
      if (!reads(link_.node(), w)) continue;
      for (int p = 0; p < block.parts(); ++p) {
        const Tensor all = receivedPart(transfer.received, received, block, p, piece.length());
        copyOnHost(mixer_.inbox(w, p), part(all, {slice.begin - piece.begin, slice.end - piece.begin}));
      }
      ++received;
    }
    if (mergesMoments) mixer_.merge(mixing.merged(), 0, block.mergedCopy());
    mixer_.mix(mixing, here_);
  });
}

}  // namespace muster
