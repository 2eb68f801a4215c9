#include "muster/parallel/nodes/node_gathering.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {
namespace {

bool isOfNode(const StrategyState& state) {
  return state.declared.place == StrategyBlock::Place::Node;
}

}  // namespace

NodeGathering::NodeGathering(Exchange& exchange, NodeLink& link, int channel)
    : exchange_(exchange),
      link_(link),
      allGathering_(2 * static_cast<std::size_t>(link.nodes())),
      asking_(2 * static_cast<std::size_t>(link.nodes())),
      messages_(link, channel),
      asked_(static_cast<std::size_t>(link.nodes())) {}

void NodeGathering::allGather(std::span<const std::byte> own, std::span<std::byte> all) {
  link_.beginGather(allGathering_, kContributions, own, all);
  // A node that gathers blocks, such as a codec's residuals, calls `allGather` later.
  const bool mayAsk = gathering_ || std::ranges::any_of(exchange_.strategyBlocks(), isOfNode);
  try {
    while (mayAsk && ask(0)) answer({});
  } catch (...) {  // the link's thread may still write to `all`
    link_.fail();
    link_.waitIfFailed();
    throw;
  }
  waitFor(allGathering_);
}

void NodeGathering::gather(const StrategyState& block, const Tensor& into) {
  ask(static_cast<std::size_t>(&block - exchange_.strategyBlocks().data()) + 1);
  answer(into);
}

void NodeGathering::gather(const SharedBlock& block, const Tensor& into) {
  ask(exchange_.strategyBlocks().size() + static_cast<std::size_t>(&block - exchange_.blocks().data()) + 1);
  answer(into);
}

void NodeGathering::answer() {
  while (gathering_ && ask(0)) answer({});
}

bool NodeGathering::ask(std::size_t block) {
  require(block <= std::numeric_limits<std::uint8_t>::max(),
          "nodes: block {} is beyond the number that can be gathered", block);
  const auto here = static_cast<std::size_t>(link_.node());
  asked_[here] = static_cast<std::uint8_t>(block);
  const std::span<std::uint8_t> all(asked_);  // a call that an exception leaves open still reads it
  link_.beginGather(asking_, kAsk, std::as_bytes(all.subspan(here, 1)), std::as_writable_bytes(all));
  waitFor(asking_);
  return std::ranges::any_of(asked_, [](std::uint8_t one) { return one > 0; });
}

void NodeGathering::answer(const Tensor& into) {
  const auto ofStrategy = exchange_.strategyBlocks();
  const auto ofReplicas = exchange_.blocks();
  bool upToDate = false;
  for (std::size_t block = 1; block <= ofStrategy.size() + ofReplicas.size(); ++block) {
    if (std::ranges::find(asked_, block) == asked_.end()) continue;
    const StrategyState* const state = block <= ofStrategy.size() ? &ofStrategy[block - 1] : nullptr;
    if (state && state->declared.inFlight) awaitLaunched();
    // Mirrors of blocks that no operation uses take the replicas' values.
    if (!state && !std::exchange(upToDate, true)) exchange_.wait();
    const auto& values = state ? state->values : ofReplicas[block - ofStrategy.size() - 1].replicas;
    std::vector<Tensor> own;  // of this node's workers
    for (std::size_t w = 0; w < values.size(); ++w)
      if (exchange_.isHere(w)) own.push_back(values[w]);
    if (state && isOfNode(*state)) own.resize(1);
    answerOne(block, own, into);
  }
}

void NodeGathering::answerOne(std::size_t block, std::span<const Tensor> own, const Tensor& into) {
  const auto asks = [&](int n) { return asked_[static_cast<std::size_t>(n)] == block; };
  const auto size = own.front().bytes(), ofAll = size * asked_.size();
  for (std::size_t l = 0; l < own.size(); ++l) {
    const auto all = asks(link_.node()) ? bytesOf(into).subspan(l * ofAll, ofAll) : std::span<std::byte>();
    messages_.run(
        bytesOf(own[l]), all, [](int) { return true; }, asks);
    if (!all.empty())
      std::ranges::copy(bytesOf(own[l]), all.subspan(static_cast<std::size_t>(link_.node()) * size).begin());
  }
}

void NodeGathering::waitFor(NodeCall& call) {
  try {
    link_.wait(call);
  } catch (const NodeFailure&) {
    for (Flight* const flight : flights_) flight->land(0);  // throws its failure
    throw;
  }
}

}  // namespace muster
