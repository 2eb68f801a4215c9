// Which exchange merges the replicas of a ReplicaSet.
#include <algorithm>
#include <utility>

#include "muster/parallel/exchange/device_exchange.h"
#include "muster/parallel/exchange/host_exchange.h"
#include "muster/parallel/nodes/node_exchange.h"
#include "muster/parallel/training/replica_set.h"

namespace muster {
namespace {

/// Whether operations read or write the block of the replicas.
bool isUsed(const SharedBlock& block, const StrategyTraits& traits) {
  if (block.rule == MergeRule::Keep) return false;
  if (!traits.used.empty()) return std::ranges::find(traits.used, block.kind) != traits.used.end();
  return block.kind != BlockKind::Gradients || traits.localWork == LocalWork::Gradient;
}

}  // namespace

std::string ReplicaSet::merging() const {
  if (exchange_) return exchange_->describe();
  if (place_.nodes > 1) return NodeExchange::describe(*nodes_.link, mirrored_);
  return mergePlan_ ? mergePlan_->describe() : std::string();
}

std::unique_ptr<Exchange> ReplicaSet::makeExchange(const std::vector<std::vector<StateBlock*>>& states,
                                                   std::vector<Tensor> refused) {
  const UpdaterState updaterState = traits_.updaterState;
  if (mergePlan_)
    return std::make_unique<DeviceExchange>(states, updaterState, *mergePlan_, std::move(refused),
                                            failingTransport_);
  if (place_.nodes == 1) return std::make_unique<HostExchange>(states, updaterState, nodes_.groups);
  std::optional<HostMirrors::Options> mirroring;
  if (mirrored_)
    mirroring = {.uses = [this](const SharedBlock& block) { return isUsed(block, traits_); },
                 .gradients = traits_.localWork == LocalWork::Gradient};
  return std::make_unique<NodeExchange>(states, updaterState, *nodes_.link, std::move(mirroring));
}

}  // namespace muster
