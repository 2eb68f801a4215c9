#include "muster/parallel/training/replica_set.h"

#include <algorithm>
#include <new>

#include "muster/core/base/error.h"
#include "muster/core/optim/finite_gradient.h"
#include "muster/parallel/exchange/own_updates.h"
#include "muster/parallel/training/named_call.h"
#include "muster/parallel/training/strategy_state.h"

namespace muster {
namespace {

NodePlace placeOf(const NodeLink* link, std::size_t workers) {
  NodePlace place{.local = static_cast<int>(workers)};
  if (link == nullptr) return place;
  place.node = link->node();
  place.nodes = link->nodes();
  return place;
}

/// The blocks that can be merged: all except counters, which each replica is given after a round.
std::vector<StateBlock*> sharedState(Model& model) {
  auto state = model.state();
  std::erase_if(state, [](const StateBlock* b) { return b->kind == BlockKind::Counters; });
  return state;
}

std::vector<const void*> memoryOf(Model& model) {
  std::vector<const void*> memory;
  for (const StateBlock* const block : sharedState(model)) memory.push_back(block->values.raw());
  return memory;
}

void requireSame(Model& model, std::span<const void* const> before, std::string_view whose) {
  const auto now = sharedState(model);
  for (std::size_t b = 0; b < before.size(); ++b)
    require(now[b]->values.raw() == before[b],
            "the block {} of {} is in other memory than before: blocks() must always return the same memory, "
            "because what is trained in other memory would be lost",
            now[b]->name, whose);
}

/// Operations on devices do not check their results, so these are checked before the model takes them.
void requireFiniteMerge(std::span<const SharedBlock> blocks, std::span<const Tensor> merged) {
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (!merged[b].defined()) continue;
    const StateBlock onCpu{.name = blocks[b].name,
                           .kind = blocks[b].kind,
                           .values = copyTo(merged[b], Device::cpu()),
                           .segments = blocks[b].segments};
    requireFiniteBlock(onCpu, fmt::format("after the last merge the {}", onCpu.name));
  }
}

}  // namespace

ReplicaSet::ReplicaSet(Model& model, const std::vector<Placement>& placements, int threadsPerWorker,
                       const AnyStrategy& strategy, NodeLink* link, int groups,
                       const detail::Internals& internals)
    : place_(placeOf(link, placements.size())),
      link_(link),
      model_(model),
      strategy_(strategy.make()),
      traits_(callStrategy("describe its traits", [&] { return strategy_->traits(place_.workers()); })),
      choice_(placements, traits_, place_.nodes > 1 ? link : nullptr, groups, internals),
      replicaMade_(internals.replicaMade) {
  for (std::size_t w = 0; w < placements.size(); ++w)
    workers_.push_back(std::make_unique<Worker>(place_.worker(static_cast<int>(w)), static_cast<int>(w),
                                                placements[w], threadsPerWorker));
  for (const auto& worker : workers_) threads_.push_back(&worker->thread());
}

std::vector<WorkerTimes> ReplicaSet::times() const {
  std::vector<WorkerTimes> times;
  for (const auto& worker : workers_) times.push_back(worker->times());
  return times;
}

void ReplicaSet::make() {
  runOnAll(threads_, "could not be made", [this](ReplicaThread& thread) {
    thread.makeReplica(model_);
    thread.replica().state();  // the updater's state is allocated here, on this thread
    thread.replica().stepRefused();
  });
  requireCopies(threads_, model_, &Model::state);
  std::vector<std::vector<StateBlock*>> states;
  std::vector<Tensor> refused;
  memory_ = {};
  for (auto* thread : threads_) {
    if (replicaMade_) replicaMade_(thread->replica());
    states.push_back(sharedState(thread->replica()));
    refused.push_back(thread->replica().stepRefused());
    memory_.push_back(memoryOf(thread->replica()));
  }
  const int workers = place_.workers();
  auto blocks = callStrategy("name its blocks", [&] { return strategy_->blocks(workers); });
  auto exchange = choice_.make(states, std::move(refused), std::move(blocks));
  if (auto* const nodes = exchange->nodeGroup(); nodes && WorkerBlocks(*exchange, place_, traits_).any())
    nodes->allowGathering();
  undo_ = exchange->makeUndo({.everyMerge = traits_.mayThrow,
                              .allState = traits_.localWork == LocalWork::Step,  // else updates check theirs
                              .mayOverflow = traits_.extrapolates});
  exchange_ = std::move(exchange);
}

bool ReplicaSet::begin(const Resumption& resumed) {
  const bool loaded = load(resumed);
  callStrategy("begin", [&] { strategy_->begin(*exchange_); });
  if (loaded && !isPlanned(resumed.ledger)) start();
  trained_ = true;
  return loaded;
}

bool ReplicaSet::load(const Resumption& resumed) {
  exchange_->wait();  // a failed fit may have left work in progress
  requireSameMemory();
  model_.context().synchronize();
  const auto state = sharedState(model_);
  modelValues_.clear();  // kept, so that the model can be filled after memory has run out
  for (const auto* block : state) modelValues_.push_back(block->values);
  merged_.reserve(modelValues_.size());
  const bool unchanged = isModelUnchanged();
  if (trained_ && unchanged && !resumed.any) {
    for (auto* thread : threads_) takeCounters(thread->replica());
    exchange_->restart();
    return false;
  }
  trained_ = false;  // until the strategy has begun with the model, too
  loadReplicas();
  for (const auto& worker : workers_) worker->setWhole(true);
  for (std::size_t b = 0; b < state.size(); ++b)
    copyToAll(state[b]->values, exchange_->blocks()[b].mergedCopies);
  const std::string rule = strategy_->describe();
  loadStrategyState(*exchange_, model_, /*stale=*/filled_ && !unchanged && !resumed.any, resumed.sameRule,
                    rule);
  beginOwnUpdates();
  workerBlocks().take(resumed.values, resumed.replicas);
  if (resumed.replicas) takeSection(resumed.values, Section::OwnUpdates, *exchange_);
  if (resumed.sameRule) takeSection(resumed.values, Section::OfWorkers, *exchange_, resumed.replicas, rule);
  if (anyInFlight(resumed.ledger)) takeSection(resumed.values, Section::InFlight, *exchange_);
  exchange_->restart();
  // What each worker has taken is not in the model: a next training continues from it, also if the epoch
  // had no batch left.
  filled_ = filled_ || resumed.any;
  return true;
}

/// What is trained in other memory than the exchange's would be lost.
void ReplicaSet::requireSameMemory() {
  requireSame(model_, memoryOf(model_), "the model");
  for (std::size_t l = 0; l < threads_.size(); ++l)
    requireSame(threads_[l]->replica(), memory_[l], fmt::format("the replica of {}", threads_[l]->name()));
}

/// Whether the model was filled, or resumed, and still holds that merge.
bool ReplicaSet::isModelUnchanged() {
  if (!filled_) return false;
  const auto merged = mergedValues();
  for (std::size_t b = 0; b < merged.size(); ++b)
    if (merged[b].defined() && !sameBytes(merged[b], modelValues_.at(b))) return false;
  return !merged.empty();
}

/// Calls Strategy::start, which may change the replicas.
void ReplicaSet::start() {
  for (int l = 0; l < place_.local; ++l) {
    const int w = place_.worker(l);
    exchange_->begin(w);
    MergeOps ops(*exchange_, w, model_.context(), MergeOps::Waiting::None);
    callStrategy("start", [&] { strategy_->start(ops); });
    exchange_->end(w);
  }
  exchange_->restart();  // first: the strategy may have changed mirrors of replicas
  exchange_->wait();
}

void ReplicaSet::loadReplicas() {
  // Read here, on one thread: a model is not thread-safe and may make its blocks in this call.
  const auto state = sharedState(model_);
  const auto blocks = exchange_->blocks();
  // Each worker copies on its own thread, so its memory is touched where it is used.
  runOnAll(threads_, "could not take the model's state", [&](ReplicaThread& thread) {
    thread.context().synchronize();  // a failed fit may have left work
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b].kind == BlockKind::Gradients) continue;
      Tensor target = blocks[b].replicas[static_cast<std::size_t>(thread.index())];
      if (target.device().isCpu())
        copy(state.at(b)->values, target);  // from any device
      else
        copy(state.at(b)->values, target, thread.context());
    }
    takeCounters(thread.replica());
  });
}

void ReplicaSet::takeCounters(Model& replica) const {
  replica.setCounters(model_.iteration(), model_.epoch());
  replica.setUpdates(model_.updates());
}

/// Workers that begin with the model's state have had its updates; if these are none, its state is zero.
void ReplicaSet::beginOwnUpdates() {
  const auto updates = static_cast<double>(model_.updates());
  for (std::size_t w = 0; w < static_cast<std::size_t>(place_.workers()); ++w) {
    OwnUpdates* const own = OwnUpdates::find(*exchange_, w);
    if (own == nullptr) return;
    *own = {.count = updates, .mergedCopyReset = updates == 0 ? 1.0 : 0.0};
  }
}

bool ReplicaSet::fill(const Ledger& now, bool afterFailure, bool together) {
  exchange_->wait();
  if (!exchange_->whole()) return false;
  model_.context().synchronize();
  for (const auto& block : exchange_->blocks())
    if (block.rule == MergeRule::Keep && trained_ && (together || place_.nodes == 1))
      workerBlocks().takeMean(block, examples(now), model_.context());
  const auto merged = mergedValues();
  if (merged.empty()) return false;
  if (!exchange_->topology().checksResults) requireFiniteMerge(exchange_->blocks(), merged);
  try {
    fillFrom(merged, afterFailure, together);
  } catch (...) {
    model_.strategyState().clear();
    throw;
  }
  filled_ = true;
  return true;
}

void ReplicaSet::fillFrom(std::span<const Tensor> merged, bool afterFailure, bool together) {
  try {
    prepareSavedState(*exchange_, model_, afterFailure, together);
  } catch (const std::exception& error) {
    const bool outOfMemory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                             dynamic_cast<const OutOfMemory*>(&error) != nullptr;
    if (!afterFailure || !outOfMemory) throw;
    model_.strategyState().clear();  // the strategy's state is reset
  }
  for (std::size_t b = 0; b < merged.size(); ++b)
    if (merged[b].defined()) copy(merged[b], modelValues_.at(b));
  saveStrategyState(*exchange_, model_, together);
}

/// Where the merged value of each block is, in the exchange's order; empty if no such state exists. Valid
/// until the next call.
std::span<const Tensor> ReplicaSet::mergedValues() {
  const auto whole = std::ranges::find_if(workers_, [](const auto& worker) { return worker->whole(); });
  const bool ofReplica = traits_.localWork == LocalWork::Gradient;
  merged_.clear();
  if (ofReplica && whole == workers_.end()) return {};
  for (const auto& block : exchange_->blocks()) {
    // Forward passes change a replica's statistics between merges, so their merged copy is taken.
    const bool updated = block.kind == BlockKind::Parameters || block.kind == BlockKind::UpdaterState;
    const bool source = block.kind == BlockKind::Parameters && !traits_.modelSource.empty();
    merged_.push_back(ofReplica && updated
                          ? block.replicas[static_cast<std::size_t>((*whole)->thread().index())]
                      : source                ? exchange_->strategyBlock(traits_.modelSource).values.front()
                      : block.hasMergedCopy() ? block.mergedCopy()
                                              : Tensor());
  }
  return merged_;
}

std::optional<std::int64_t> ReplicaSet::updatesAfterReset() const {
  if (traits_.updaterState != UpdaterState::Reset) return {};
  const OwnUpdates& own = *OwnUpdates::find(*exchange_, static_cast<std::size_t>(place_.worker(0)));
  if (traits_.localWork == LocalWork::Gradient) return static_cast<std::int64_t>(own.count);
  return own.mergedCopyReset != 0 ? std::optional<std::int64_t>(0) : std::nullopt;
}

void ReplicaSet::addOwn(TrainingState& state, const Ledger& now, bool means) {
  workerBlocks().save(state, mergedValues(), means ? examples(now) : std::vector<std::int64_t>());
  // If each merge resets all workers, a checkpoint needs no count of theirs.
  const auto add = [&](Section section) {
    addSection(state, section, model_, *exchange_, strategy_->pending());
  };
  if (traits_.replicasDiffer) add(Section::OwnUpdates);
  if (anyInFlight(now)) add(Section::InFlight);
  if (place_.nodes > 1) add(Section::OfWorkers);
}

}  // namespace muster
