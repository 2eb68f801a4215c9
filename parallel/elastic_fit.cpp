#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/nn/state_recorder.h"
#include "muster/parallel/agreement.h"
#include "muster/parallel/nodes/elastic/elastic_nodes.h"
#include "muster/parallel/nodes/elastic/model_transfer.h"
#include "muster/parallel/nodes/node_transport.h"
#include "muster/parallel/wrapper_impl.h"

namespace muster {
namespace {

template <typename Call>
auto orFailed(Call call) try {
  return call();
} catch (const NodeFailure& failure) {
  throw TrainingError(fmt::format("the training over elastic nodes has failed: {}", failure.what()), -1,
                      std::current_exception());
}

}  // namespace

/// One `fit()` over elastic nodes: a sequence of generations, each with the nodes that are members then. Used
/// by the thread that called `fit()`.
struct ParallelWrapper::Impl::ElasticFit {
  void run();
  bool unfinished() const { return !wrapper.stop_ && wrapper.model_.epoch() < lastEpoch; }
  bool trainGeneration();
  void callEnd();

  Impl& wrapper;
  ElasticNodes& nodes;
  DataSetIterator& data;
  const std::int64_t lastEpoch;
  FitParts parts = {};
  Listeners listeners = {};  // of the last generation that could begin
  bool inTraining = false;   // whether this node has trained in a generation
};

void ParallelWrapper::Impl::fitOverElasticNodes(DataSetIterator& data, std::int64_t epochs) {
  ElasticFit{*this, *options_.nodes.elastic(), data, model_.epoch() + epochs}.run();
}

void ParallelWrapper::Impl::ElasticFit::run() {
  require(!nodes.running(), "nodes: another wrapper uses them; create new ones for this one");
  Batch& first = parts.first.emplace();
  wrapper.session_->fitBeforeTraining(*wrapper.usersData_);
  require(wrapper.session_->prepareModel(data, 0, {}, first), "fit: the data set has no batches");
  nodes.begin(inWords({wrapper.options_, wrapper.model_, data, lastEpoch, 0, &first}));
  struct Leave {
    ElasticNodes& nodes;
    bool well = false;
    ~Leave() { nodes.end(well); }
  } leave{nodes};
  parts.regroup = &nodes.joinRequested();
  {
    const Lock lock(wrapper.timesMutex_);
    wrapper.timesBefore_.clear();
    for (const auto& worker : wrapper.replicas().workers()) worker->resetTimes();
  }
  try {
    while (unfinished() && trainGeneration()) {
    }
    // A process that was silent for long may have trained to the end while the others continued without it.
    orFailed([&] { nodes.requireCurrent(); });
  } catch (...) {
    callEnd();
    throw;
  }
  callEnd();
  leave.well = true;
}

/// Calls the listeners for the end if no generation has, because the training ended between two.
void ParallelWrapper::Impl::ElasticFit::callEnd() {
  if (std::exchange(parts.ended, true)) return;
  forEachAtEnd(listeners, [&](Listener& listener) {
    if (std::ranges::none_of(parts.started, [&](const auto& one) { return one.get() == &listener; })) return;
    wrapper.caller_.set(Activity::Kind::InListener);
    try {
      listener.onFitEnd(wrapper);
    } catch (const std::exception& error) {
      logWarning("a listener failed at the end: {}", error.what());
    }
  });
  wrapper.caller_.set(Activity::Kind::WaitingForWorkers);
}

/// @return whether another generation follows.
bool ParallelWrapper::Impl::ElasticFit::trainGeneration() {
  if (!orFailed([&] { return nodes.next([this] { return wrapper.stop_.load(); }); })) return false;
  Model& model = wrapper.model_;
  std::string problem;
  try {
    if (NodeLink* const link = nodes.link().get()) shareModel(*link, model, inTraining);
    inTraining = true;
    const auto position = namingResumedFile(model, [&] { return positionIn(model.trainingState()); });
    logInfo("generation {}: this is node {} of {}, from iteration {} (epoch {}, after {} of it)",
            nodes.generation().number, nodes.node(), nodes.nodes(), model.iteration(), model.epoch() + 1,
            plural(position ? position->nextBatch : 0, "batch", "batches"));
    wrapper.beginSession();
    listeners = wrapper.session_->listeners();
    return model.epoch() < lastEpoch && wrapper.fitHere(data, lastEpoch - model.epoch(), &parts);
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
