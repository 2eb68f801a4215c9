#include "muster/parallel/nodes/node_moments.h"

#include <algorithm>

#include "muster/core/ops/merge.h"
#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {
namespace {

constexpr std::int64_t kPiece = 512;  // means at a time

}  // namespace

NodeMoments::NodeMoments(NodeLink& link, int local, int channel)
    : link_(link),
      local_(local),
      channel_(channel),
      call_(4 * static_cast<std::size_t>(link.nodes() * local)) {
  const int workers = link.nodes() * local;
  for (int w = link.node(); w < workers; w += link.nodes()) here_.push_back(static_cast<std::size_t>(w));
  mirrors_ = Tensor::empty({workers * 2 * kPiece}, DType::Float64);
  replicas_.resize(static_cast<std::size_t>(workers));
}

void NodeMoments::run(const SharedBlock& block, std::span<const double> weights, Slice own,
                      Context& context) {
  const std::int64_t half = block.replicas[here_.front()].elements() / 2;
  for (std::int64_t at = own.begin; at < own.end; at += kPiece) {
    const Slice piece{at, std::min(own.end, at + kPiece)};
    const std::int64_t length = piece.length();
    exchange(block, piece);
    Tensor none;
    weightedMoments(replicas_, weights, none, 0, length, context);
    for (int p = 0; p < 2; ++p) {
      const Tensor result = part(replicas_.front(), inPart({0, length}, p, length));
      for (const std::size_t w : here_) copyOnHost(part(block.replicas[w], inPart(piece, p, half)), result);
      if (block.hasMergedCopy()) copyOnHost(part(block.mergedCopy(), inPart(piece, p, half)), result);
    }
  }
}

void NodeMoments::exchange(const SharedBlock& block, Slice piece) {
  const Tensor& first = block.replicas[here_.front()];
  const std::int64_t half = first.elements() / 2, length = piece.length();
  call_.clear();
  for (int l = 0; l < local_; ++l)
    for (int n = 0; n < link_.nodes(); ++n) {
      const auto w = static_cast<std::size_t>(l * link_.nodes() + n);
      replicas_[w] = viewAt(mirrors_.slice(static_cast<std::int64_t>(w) * 2 * kPiece, {2 * kPiece}), 0,
                            2 * length, first.dtype());
      for (int p = 0; p < 2; ++p) {
        const Tensor there = part(replicas_[w], inPart({0, length}, p, length));
        if (n != link_.node()) {
          call_.receive(n, channel_, bytesOf(there));
          continue;
        }
        const Tensor values = part(block.replicas[w], inPart(piece, p, half));
        copyOnHost(there, values);
        for (int to = 0; to < link_.nodes(); ++to)
          if (to != link_.node()) call_.send(to, channel_, bytesOf(values));
      }
    }
  link_.begin(call_);
  link_.wait(call_);
}

}  // namespace muster
