#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/nodes/node_flight.h"

namespace muster {

/// What nodes send each other between merges. Each node announces to all others which block it gathers, and
/// sends its part of those that others do.
class NodeGathering final : public NodeGroup {
 public:
  /// Channels for contributions, and for which blocks nodes gather; the exchange uses those from `kFirstFree`
  /// on.
  enum { kContributions = 1, kAsk, kFirstFree };
  /// @param channel  for blocks; nothing else uses it.
  NodeGathering(Exchange& exchange, NodeLink& link, int channel);
  /// What is launched while the workers train.
  void add(Flight& flight) { flights_.push_back(&flight); }

  void allGather(std::span<const std::byte> own, std::span<std::byte> all) override;
  void gather(const StrategyState& block, const Tensor& into) override;
  void gather(const SharedBlock& block, const Tensor& into) override;
  void allowGathering() override { gathering_ = true; }
  void answer() override;
  bool awaitLaunched() override {
    bool well = true;
    for (Flight* const flight : flights_) well = flight->wait() && well;
    return well;
  }

 private:
  /// Sends all nodes which block this node gathers (number from 1: the strategy's blocks, then the replicas'
  /// blocks; 0: none), and receives what they ask for. @return whether any node asks.
  bool ask(std::size_t block);
  /// Sends this node's part of the blocks to the nodes that ask for them. @param into  receives the block
  /// that this node has asked for.
  void answer(const Tensor& into);
  /// @param own  [local] this node's parts of one block, of one size.
  /// @param into  receives the parts of all, [local][node].
  void answerOne(std::size_t block, std::span<const Tensor> own, const Tensor& into);
  /// Waits for a call. @throws the failure of a launch, which has ended the link, in place of a NodeFailure.
  void waitFor(NodeCall& call);

  Exchange& exchange_;
  NodeLink& link_;
  NodeCall allGathering_, asking_;
  NodeMessages messages_;
  std::vector<std::uint8_t> asked_;  // [node]
  bool gathering_ = false;           // whether nodes may gather replicas
  std::vector<Flight*> flights_;
};

}  // namespace muster
