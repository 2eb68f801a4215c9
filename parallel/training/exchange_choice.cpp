#include "muster/parallel/training/exchange_choice.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/parallel/exchange/device_exchange.h"
#include "muster/parallel/exchange/host_exchange.h"
#include "muster/parallel/exchange/own_updates.h"
#include "muster/parallel/nodes/node_exchange.h"

namespace muster {
namespace {

bool onCpu(std::span<const Placement> placements) {
  return std::ranges::all_of(placements, &Device::isCpu, &Placement::device);
}

/// The plan of which workers share a device and which transport connects devices; nothing for workers on the
/// CPU, unless this is to be treated as several devices.
std::optional<MergePlan> planMerges(std::span<const Placement> placements, int pretendedDevices) {
  if (onCpu(placements)) {
    if (pretendedDevices == 0) return {};
    std::vector<DeviceGroup> pretended(
        std::min(placements.size(), static_cast<std::size_t>(pretendedDevices)));
    for (std::size_t w = 0; w < placements.size(); ++w) pretended[w % pretended.size()].workers.push_back(w);
    return MergePlan(std::move(pretended), TransportKind::Peers);
  }
  std::vector<Device> devices;
  for (const auto& placement : placements) devices.push_back(placement.device);
  auto groups = groupByDevice(devices);
  if (groups.size() == 1) return MergePlan(std::move(groups), TransportKind::Host);
  std::vector<Device> each;
  for (const auto& group : groups) each.push_back(group.device);
  const Links links = linksBetween(each);
  const TransportKind kind = bestTransport(links);
  if (kind != TransportKind::Nccl)
    logInfo("replicas on {} GPUs are to be merged by {}: {}", each.size(), nameOf(kind), links.whyNoNccl);
  return MergePlan(std::move(groups), kind);
}

/// Whether operations read or write the block of the replicas.
bool isUsed(const SharedBlock& block, const StrategyTraits& traits) {
  if (block.rule == MergeRule::Keep) return false;
  if (!traits.used.empty()) return std::ranges::find(traits.used, block.kind) != traits.used.end();
  return block.kind != BlockKind::Gradients || traits.localWork == LocalWork::Gradient;
}

void requireModelSource(const Exchange& exchange, const StrategyTraits& traits) {
  if (traits.modelSource.empty()) return;
  const StrategyState& source = exchange.strategyBlock(traits.modelSource);
  require(traits.localWork == LocalWork::Step && source.declared.place == StrategyBlock::Place::MergedCopy &&
              source.declared.saved && !source.declared.inFlight &&
              source.values.front().dtype() == exchange.block(BlockKind::Parameters).mergedCopy().dtype(),
          "strategy: the model cannot be filled from block \"{}\": it must be of Place::MergedCopy, saved, "
          "not in flight and of the parameters' type, and local work a whole step",
          traits.modelSource);
}

}  // namespace

ExchangeChoice::ExchangeChoice(std::span<const Placement> placements, StrategyTraits traits, NodeLink* link,
                               int groups, const detail::Internals& internals)
    : traits_(std::move(traits)),
      link_(link),
      groups_(groups),
      mirrored_(link != nullptr && (internals.pretendedDevices > 0 || !onCpu(placements))),
      plan_(link != nullptr ? std::nullopt : planMerges(placements, internals.pretendedDevices)),
      failingTransport_(internals.failingTransport) {}

std::string ExchangeChoice::describe() const {
  if (link_ != nullptr) return NodeExchange::describe(*link_, mirrored_);
  return plan_ ? plan_->describe() : std::string();
}

std::unique_ptr<Exchange> ExchangeChoice::make(const std::vector<std::vector<StateBlock*>>& states,
                                               std::vector<Tensor> refused,
                                               std::vector<StrategyBlock> blocks) const {
  auto exchange = makeEmpty(states, std::move(refused));
  if (traits_.arrivals || traits_.updaterState == UpdaterState::Reset)
    blocks.push_back({.name = std::string(kOwnUpdates),
                      .place = StrategyBlock::Place::Replica,
                      .numbers = OwnUpdates::kNumbers,
                      .counts = true,
                      .saved = false});  // they belong to the replicas, not to the model; see addSection
  exchange->makeStrategyBlocks(blocks);
  requireModelSource(*exchange, traits_);
  return exchange;
}

std::unique_ptr<Exchange> ExchangeChoice::makeEmpty(const std::vector<std::vector<StateBlock*>>& states,
                                                    std::vector<Tensor> refused) const {
  const UpdaterState updaterState = traits_.updaterState;
  if (plan_)
    return std::make_unique<DeviceExchange>(states, updaterState, *plan_, std::move(refused),
                                            failingTransport_);
  if (link_ == nullptr) return std::make_unique<HostExchange>(states, updaterState, groups_);
  std::optional<HostMirrors::Options> mirroring;
  if (mirrored_)
    mirroring = {.uses = [this](const SharedBlock& block) { return isUsed(block, traits_); },
                 .gradients = traits_.localWork == LocalWork::Gradient};
  return std::make_unique<NodeExchange>(states, updaterState, *link_, std::move(mirroring));
}

}  // namespace muster
