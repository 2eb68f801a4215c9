// Messages of NodeExchange beside the sums: contributions to a round, strategy blocks, encoded values.
#include <algorithm>
#include <utility>

#include "muster/parallel/exchange/means_in_flight.h"
#include "muster/parallel/exchange/node_exchange.h"

namespace muster {
namespace {

std::span<std::byte> bytesOf(const Tensor& t) {
  return {static_cast<std::byte*>(t.raw()), t.bytes()};
}

}  // namespace

void NodeExchange::gather(std::span<const std::byte> own, std::span<std::byte> all) {
  gathering_.clear();
  for (int n = 0; n < nodes(); ++n) {
    if (n == node()) continue;
    gathering_.receive(n, kGatherChannel, all.subspan(static_cast<std::size_t>(n) * own.size(), own.size()));
    gathering_.send(n, kGatherChannel, own);
  }
  link_.begin(gathering_);
  std::ranges::copy(own, all.subspan(static_cast<std::size_t>(node()) * own.size()).begin());
  // A node that asks for blocks calls `gather` later.
  while (nodesHaveBlocks() && ask(0)) answer({});
  link_.wait(gathering_);
}

void NodeExchange::collect(const StrategyState& block, const Tensor& into) {
  ask(static_cast<std::uint8_t>(&block - strategyBlocks().data() + 1));
  answer(into);
}

bool NodeExchange::ask(std::uint8_t block) {
  asked_[static_cast<std::size_t>(node())] = block;
  const auto of = [&](int n) {
    return std::as_writable_bytes(std::span(asked_).subspan(static_cast<std::size_t>(n), 1));
  };
  asking_.clear();
  for (int n = 0; n < nodes(); ++n) {
    if (n == node()) continue;
    asking_.receive(n, kAskChannel, of(n));
    asking_.send(n, kAskChannel, of(node()));
  }
  link_.begin(asking_);
  link_.wait(asking_);
  return std::ranges::any_of(asked_, [](std::uint8_t one) { return one > 0; });
}

void NodeExchange::answer(const Tensor& into) {
  for (std::size_t b = 0; b < strategyBlocks().size(); ++b) {
    const auto asks = [&](int n) { return asked_[static_cast<std::size_t>(n)] == b + 1; };
    if (std::ranges::find(asked_, b + 1) == asked_.end()) continue;
    const auto own = bytesOf(strategyBlocks()[b].values[static_cast<std::size_t>(node())]);
    const auto all = asks(node()) ? bytesOf(into) : std::span<std::byte>();
    messages_.run(
        own, all, [](int) { return true; }, asks);
    if (!all.empty())
      std::ranges::copy(own, all.subspan(static_cast<std::size_t>(node()) * own.size()).begin());
  }
}

void NodeExchange::tellNodes(std::span<std::byte> all, std::span<const double> weights,
                             std::function<void(Context&)> then, Context& context) {
  const bool later = flight_ && MeansInFlight::may();
  if (later && flight_->idle()) toldCount_ = 0;
  if (later && toldCount_ == told_.size()) told_.emplace_back();
  Told& next = later ? told_[toldCount_] : now_;
  next.all = all;
  next.weights.assign(weights.begin(), weights.end());
  next.then = std::move(then);
  if (!later) return tell(next, messages_, context);
  ++toldCount_;
  flight_->launch([this, &next](Context& flying) { tell(next, messagesInFlight_, flying); });
}

void NodeExchange::tell(const Told& told, NodeMessages& messages, Context& context) {
  const std::size_t size = told.all.size() / static_cast<std::size_t>(nodes());
  const auto sends = [&](int n) { return told.weights[static_cast<std::size_t>(n)] > 0; };
  messages.run(told.all.subspan(static_cast<std::size_t>(node()) * size, size), told.all, sends,
               [](int) { return true; });
  told.then(context);
}

}  // namespace muster
