#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/exchange/merge_plan.h"
#include "muster/parallel/runtime/placement.h"
#include "muster/parallel/strategies/strategy_traits.h"
#include "muster/parallel/training/internals.h"

namespace muster {

class NodeLink;

/// Which exchange merges a wrapper's replicas: several nodes have a NodeExchange, workers on GPUs a
/// DeviceExchange, workers on CPUs a HostExchange.
class ExchangeChoice {
 public:
  /// @param placements  [local worker].
  /// @param link  other nodes, which must outlive the exchange; null: none.
  /// @param groups  see HostExchange.
  ExchangeChoice(std::span<const Placement> placements, StrategyTraits traits, NodeLink* link, int groups,
                 const detail::Internals& internals = {});

  /// Whether workers are on GPUs, with mirrors of their replicas in host memory.
  bool mirrored() const { return mirrored_; }
  /// The transport that is tried first, as text; "" on the CPUs of one node.
  std::string describe() const;
  /// @param states  [local worker] of the replicas.  @param refused  [local worker] Model::stepRefused.
  /// @param blocks  of the strategy.
  std::unique_ptr<Exchange> make(const std::vector<std::vector<StateBlock*>>& states,
                                 std::vector<Tensor> refused, std::vector<StrategyBlock> blocks = {}) const;

 private:
  std::unique_ptr<Exchange> makeEmpty(const std::vector<std::vector<StateBlock*>>& states,
                                      std::vector<Tensor> refused) const;

  const StrategyTraits traits_;
  NodeLink* const link_;
  const int groups_;
  const bool mirrored_;
  const std::optional<MergePlan> plan_;                  // of workers on GPUs of one node
  const std::optional<TransportKind> failingTransport_;  // for tests
};

}  // namespace muster
