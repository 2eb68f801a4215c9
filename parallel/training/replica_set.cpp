#include "muster/parallel/training/replica_set.h"

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
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

}  // namespace

ReplicaSet::ReplicaSet(Model& model, const std::vector<Placement>& placements, int threadsPerWorker,
                       const Strategy& strategy, const NodeOptions& nodes, const detail::Internals& internals)
    : place_(placeOf(nodes.link, placements.size())),
      link_(nodes.link),
      model_(model),
      strategy_(strategy),
      traits_(callStrategy("describe its traits", [&] { return strategy.traits(place_.workers()); })),
      choice_(placements, traits_, place_.nodes > 1 ? nodes.link : nullptr, nodes.groups, internals),
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

std::vector<std::int64_t> ReplicaSet::examples() const {
  auto all = examplesBefore_;
  for (const auto& worker : workers_)
    all[static_cast<std::size_t>(worker->thread().index())] += worker->times().examples;
  return all;
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
    memory_.add(states.back());
  }
  const int workers = place_.workers();
  auto blocks = callStrategy("name its blocks", [&] { return strategy_.blocks(workers); });
  auto exchange = choice_.make(states, std::move(refused), std::move(blocks));
  if (auto* const nodes = exchange->nodeGroup(); nodes && WorkerBlocks(*exchange, place_, traits_).any())
    nodes->allowGathering();
  undo_ = exchange->makeUndo({.everyMerge = traits_.mayThrow,
                              .allState = traits_.localWork == LocalWork::Step,  // else updates check theirs
                              .mayOverflow = traits_.extrapolates});
  exchange_ = std::move(exchange);
  filling_.emplace(model_, *exchange_, place_, traits_, workers_);
}

bool ReplicaSet::begin(Strategy& strategy, const Resumption& resumed) {
  const bool loaded = load(resumed);
  callStrategy("begin", [&] { strategy.begin(*exchange_); });
  if (loaded && !resumed.ledger) start(strategy);
  trained_ = true;
  return loaded;
}

bool ReplicaSet::load(const Resumption& resumed) {
  exchange_->wait();  // a failed fit may have left work in progress
  memory_.requireSame(model_, threads_);
  model_.context().synchronize();
  filling_->begin();
  const bool unchanged = filling_->isUnchanged();
  examplesBefore_ = resumed.examples;
  examplesBefore_.resize(static_cast<std::size_t>(place_.workers()));
  if (trained_ && unchanged && !resumed.any) {
    for (auto* thread : threads_) takeCounters(thread->replica());
    exchange_->restart();
    return false;
  }
  trained_ = false;  // until the strategy has begun with the model, too
  loadReplicas();
  for (const auto& worker : workers_) worker->setWhole(true);
  const auto state = sharedState(model_);
  for (std::size_t b = 0; b < state.size(); ++b)
    copyToAll(state[b]->values, exchange_->blocks()[b].mergedCopies);
  const std::string rule = strategy_.describe();
  loadStrategyState(*exchange_, model_, /*stale=*/filling_->filled() && !unchanged && !resumed.any,
                    resumed.sameRule, rule);
  beginOwnUpdates();
  takeValues(resumed.values, *exchange_, resumed.replicas);
  if (resumed.replicas) takeSection(resumed.values, Section::OwnUpdates, *exchange_);
  if (resumed.sameRule) takeSection(resumed.values, Section::OfWorkers, *exchange_, resumed.replicas, rule);
  if (resumed.ledger && anyInFlight(*resumed.ledger))
    takeSection(resumed.values, Section::InFlight, *exchange_);
  exchange_->restart();
  // What each worker has taken is not in the model: a next training continues from it, also if the epoch
  // had no batch left.
  if (resumed.any) filling_->setFilled();
  return true;
}

/// Calls Strategy::start, which may change the replicas.
void ReplicaSet::start(Strategy& strategy) {
  for (int l = 0; l < place_.local; ++l) {
    const int w = place_.worker(l);
    exchange_->begin(w);
    MergeOps ops(*exchange_, w, model_.context(), MergeOps::Waiting::None);
    callStrategy("start", [&] { strategy.start(ops); });
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

bool ReplicaSet::fill(bool afterFailure, bool together) {
  exchange_->wait();
  if (!exchange_->whole()) return false;
  model_.context().synchronize();
  for (const auto& block : exchange_->blocks())
    if (block.rule == MergeRule::Keep && trained_ && (together || place_.nodes == 1))
      workerBlocks().takeMean(block, examples(), model_.context());
  return filling_->fill(afterFailure, together);
}

void ReplicaSet::addOwn(TrainingState& state, bool inFlight, std::span<const std::int64_t> examples) {
  std::vector<CollectedBlock> collected;
  for (const SharedBlock& block : exchange_->blocks())
    collected.push_back(workerBlocks().collect(block, examples));
  addValues(state, exchange_->blocks(), filling_->mergedValues(), traits_.localWork == LocalWork::Step,
            collected);
  // If each merge resets all workers, a checkpoint needs no count of theirs.
  const auto add = [&](Section section) {
    addSection(state, section, model_, *exchange_, strategy_.pending());
  };
  if (traits_.replicasDiffer) add(Section::OwnUpdates);
  if (inFlight) add(Section::InFlight);
  if (place_.nodes > 1) add(Section::OfWorkers);
}

}  // namespace muster
