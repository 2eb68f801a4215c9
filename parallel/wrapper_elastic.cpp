// Training over elastic nodes, as a sequence of generations.
#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/nn/state_recorder.h"
#include "muster/parallel/nodes/elastic/elastic_nodes.h"
#include "muster/parallel/nodes/elastic/model_transfer.h"
#include "muster/parallel/nodes/node_transport.h"
#include "muster/parallel/training/agreement.h"
#include "muster/parallel/training/first_batch.h"
#include "muster/parallel/wrapper_impl.h"

namespace muster {
namespace {

/// In a handler of the failure.
[[noreturn]] void throwFailed(const NodeFailure& failure) {
  throw TrainingError(fmt::format("the training over elastic nodes has failed: {}", failure.what()), -1,
                      std::current_exception());
}

/// A process that was silent for long may have trained to the end while the others continued without it.
void requireCurrent(ElasticNodes& nodes) try { nodes.requireCurrent(); } catch (const NodeFailure& failure) {
  throwFailed(failure);
}

}  // namespace

void ParallelWrapper::Impl::fitElastic(DataSetIterator& data, std::int64_t epochs) {
  ElasticNodes& nodes = *options_.nodes.elastic();
  require(!nodes.running(), "nodes: another wrapper uses them; create new ones for this one");
  const std::int64_t lastEpoch = model_.epoch() + epochs;
  Batch first;
  fitBeforeTraining(model_, *usersData_, caller_);
  require(prepareModel(model_, data, caller_, 0, {}, first), "fit: the data set has no batches");
  nodes.begin(inWords(agreement(data, lastEpoch, 0, &first)));
  struct Leave {
    ElasticNodes& nodes;
    bool well = false;
    ~Leave() { nodes.end(well); }
  } leave{nodes};
  {
    const Lock lock(timesMutex_);
    timesBefore_.clear();
    for (const auto& worker : replicas_->workers()) worker->resetTimes();
  }
  FitParts parts{.regroup = nodes.joinRequested(), .first = std::move(first)};
  bool inTraining = false;
  try {
    while (!stop_ && model_.epoch() < lastEpoch)
      if (!trainTogether(data, lastEpoch, inTraining, parts)) break;
    requireCurrent(nodes);
  } catch (...) {
    tellEnd(parts);
    throw;
  }
  tellEnd(parts);
  leave.well = true;
}

/// Tells listeners of the end if no part has, because the training ended between two parts.
void ParallelWrapper::Impl::tellEnd(FitParts& parts) {
  if (std::exchange(parts.ended, true)) return;
  forEachAtEnd(listeners_, [&](Listener& listener) {
    if (std::ranges::find(parts.started, &listener) == parts.started.end()) return;
    caller_.set(Activity::Kind::InListener);
    try {
      listener.onFitEnd(*this);
    } catch (const std::exception& error) {
      logWarning("a listener failed at the end: {}", error.what());
    }
  });
  caller_.set(Activity::Kind::WaitingForWorkers);
}

/// Trains one generation. @return whether another one follows.
bool ParallelWrapper::Impl::trainTogether(DataSetIterator& data, std::int64_t lastEpoch, bool& inTraining,
                                          FitParts& parts) {
  ElasticNodes& nodes = *options_.nodes.elastic();
  try {
    if (!nodes.next([this] { return stop_.load(); })) return false;
  } catch (const NodeFailure& failure) {
    throwFailed(failure);
  }
  std::string problem;
  try {
    if (NodeLink* const link = nodes.link().get()) shareModel(*link, model_, inTraining);
    inTraining = true;
    const auto position = namingResumedFile(model_, [&] { return positionIn(model_.trainingState()); });
    logInfo("generation {}: this is node {} of {}, from iteration {} (epoch {}, after {} of it)",
            nodes.generation().number, nodes.node(), nodes.nodes(), model_.iteration(), model_.epoch() + 1,
            plural(position ? position->nextBatch : 0, "batch", "batches"));
    beginSession();
    return model_.epoch() < lastEpoch && fitHere(data, lastEpoch - model_.epoch(), &parts);
  } catch (const TrainingError& error) {
    if (!isOfAnotherNode(error.cause())) throw;
    problem = error.what();
  } catch (const NodeFailure& failure) {
    problem = failure.what();
  }
  if (NodeLink* const link = nodes.link().get()) link->fail();
  logWarning("generation {} has ended: {}", nodes.generation().number, problem);
  return true;
}

}  // namespace muster
