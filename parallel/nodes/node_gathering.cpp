// Messages of NodeExchange beside the sums: contributions to a round, strategy blocks, encoded values.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/parallel/exchange/tensor_parts.h"
#include "muster/parallel/nodes/node_exchange.h"

namespace muster {

void NodeExchange::allGather(std::span<const std::byte> own, std::span<std::byte> all) {
  link_.beginGather(allGathering_, kGatherChannel, own, all);
  // A node that gathers blocks calls `allGather` later.
  try {
    while ((gathering_ || nodesHaveBlocks()) && ask(0)) answer({});
  } catch (...) {  // the link's thread may still write to `all`
    link_.fail();
    link_.waitIfFailed();
    throw;
  }
  waitFor(allGathering_);
}

void NodeExchange::gather(const StrategyState& block, const Tensor& into) {
  ask(static_cast<std::size_t>(&block - strategyBlocks().data()) + 1);
  answer(into);
}

void NodeExchange::gather(const SharedBlock& block, const Tensor& into) {
  ask(strategyBlocks().size() + static_cast<std::size_t>(&block - blocks_.data()) + 1);
  answer(into);
}

void NodeExchange::answer() {
  while (gathering_ && ask(0)) answer({});
}

bool NodeExchange::ask(std::size_t block) {
  require(block <= std::numeric_limits<std::uint8_t>::max(),
          "nodes: block {} is beyond the number that can be gathered", block);
  const auto here = static_cast<std::size_t>(node());
  asked_[here] = static_cast<std::uint8_t>(block);
  const std::span<std::uint8_t> all(asked_);  // a call that an exception leaves open still reads it
  link_.beginGather(asking_, kAskChannel, std::as_bytes(all.subspan(here, 1)), std::as_writable_bytes(all));
  waitFor(asking_);
  return std::ranges::any_of(asked_, [](std::uint8_t one) { return one > 0; });
}

void NodeExchange::answer(const Tensor& into) {
  const auto isAsked = [&](std::size_t block) { return std::ranges::find(asked_, block) != asked_.end(); };
  const std::size_t ofStrategy = strategyBlocks().size();
  for (std::size_t b = 0; b < ofStrategy; ++b)
    if (isAsked(b + 1)) {
      if (strategyBlocks()[b].declared.inFlight) awaitLaunched();
      answerOne(b + 1, ownParts(strategyBlocks()[b]), into);
    }
  const bool replicas = std::ranges::any_of(asked_, [&](std::size_t one) { return one > ofStrategy; });
  if (!replicas) return;
  wait();  // mirrors of blocks that no operation uses take the replicas' values
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    if (!isAsked(ofStrategy + b + 1)) continue;
    std::vector<Tensor> own;
    for (const std::size_t w : here_) own.push_back(blocks_[b].replicas[w]);
    answerOne(ofStrategy + b + 1, own, into);
  }
}

std::vector<Tensor> NodeExchange::ownParts(const StrategyState& state) const {
  if (state.declared.place == StrategyBlock::Place::Node)
    return {state.values[static_cast<std::size_t>(node())]};
  std::vector<Tensor> own;
  for (const std::size_t w : here_) own.push_back(state.values[w]);
  return own;
}

void NodeExchange::answerOne(std::size_t block, std::span<const Tensor> own, const Tensor& into) {
  const auto asks = [&](int n) { return asked_[static_cast<std::size_t>(n)] == block; };
  const auto size = own.front().bytes(), ofAll = size * static_cast<std::size_t>(nodes());
  for (std::size_t l = 0; l < own.size(); ++l) {
    const auto all = asks(node()) ? bytesOf(into).subspan(l * ofAll, ofAll) : std::span<std::byte>();
    messages_.run(
        bytesOf(own[l]), all, [](int) { return true; }, asks);
    if (!all.empty())
      std::ranges::copy(bytesOf(own[l]), all.subspan(static_cast<std::size_t>(node()) * size).begin());
  }
}

void NodeExchange::allGatherEncoded(std::span<std::byte> all, std::span<const double> weights,
                                    std::function<void(Context&)> then, bool later, Context& context) {
  later = later && flight_;
  if (later && flight_->idle()) encodedCount_ = 0;
  if (later && encodedCount_ == encoded_.size()) encoded_.emplace_back();
  Encoded& next = later ? encoded_[encodedCount_] : now_;
  next.all = all;
  next.weights.assign(weights.begin(), weights.end());
  next.then = std::move(then);
  if (!later) return send(next, messages_, context);
  ++encodedCount_;
  flight_->launch([this, &next](Context& flying) { send(next, messagesInFlight_, flying); });
}

void NodeExchange::send(const Encoded& encoded, NodeMessages& messages, Context& context) {
  const std::size_t size = encoded.all.size() / static_cast<std::size_t>(nodes());
  const auto sends = [&](int n) { return encoded.weights[static_cast<std::size_t>(n)] > 0; };
  messages.run(encoded.all.subspan(static_cast<std::size_t>(node()) * size, size), encoded.all, sends,
               [](int) { return true; });
  encoded.then(context);
}

}  // namespace muster
