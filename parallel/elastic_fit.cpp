#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/nn/state_recorder.h"
#include "muster/parallel/fit_preparation.h"
#include "muster/parallel/nodes/elastic/elastic_nodes.h"
#include "muster/parallel/nodes/elastic/model_transfer.h"
#include "muster/parallel/nodes/node_transport.h"
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

/// One `fit()` over elastic nodes: a sequence of generations, each with the nodes that are members then. Used
/// by the thread that called `fit()`.
class ParallelWrapper::Impl::ElasticFit {
 public:
  ElasticFit(Impl& wrapper, DataSetIterator& data, std::int64_t epochs);

  void run();

 private:
  bool unfinished() const { return !wrapper_.stop_ && wrapper_.model_.epoch() < lastEpoch_; }
  bool trainGeneration();
  void callEnd();

  Impl& wrapper_;
  ElasticNodes& nodes_;
  DataSetIterator& data_;
  const std::int64_t lastEpoch_;
  bool inTraining_ = false;        // whether this node has trained in a generation
  std::optional<FitParts> parts_;  // set once the nodes have begun
};

void ParallelWrapper::Impl::fitOverElasticNodes(DataSetIterator& data, std::int64_t epochs) {
  ElasticFit(*this, data, epochs).run();
}

ParallelWrapper::Impl::ElasticFit::ElasticFit(Impl& wrapper, DataSetIterator& data, std::int64_t epochs)
    : wrapper_(wrapper),
      nodes_(*wrapper.options_.nodes.elastic()),
      data_(data),
      lastEpoch_(wrapper.model_.epoch() + epochs) {}

void ParallelWrapper::Impl::ElasticFit::run() {
  require(!nodes_.running(), "nodes: another wrapper uses them; create new ones for this one");
  Batch first;
  fitBeforeTraining(wrapper_.model_, *wrapper_.usersData_, wrapper_.caller_);
  require(prepareModel(wrapper_.model_, data_, wrapper_.caller_, 0, {}, first),
          "fit: the data set has no batches");
  nodes_.begin(inWords(agreementOf(wrapper_.model_, wrapper_.options_, data_, lastEpoch_, 0, &first)));
  struct Leave {
    ElasticNodes& nodes;
    bool well = false;
    ~Leave() { nodes.end(well); }
  } leave{nodes_};
  {
    const Lock lock(wrapper_.timesMutex_);
    wrapper_.timesBefore_.clear();
    for (const auto& worker : wrapper_.replicas().workers()) worker->resetTimes();
  }
  parts_.emplace(FitParts{.regroup = nodes_.joinRequested(), .first = std::move(first)});
  try {
    while (unfinished() && trainGeneration()) {
    }
    requireCurrent(nodes_);
  } catch (...) {
    callEnd();
    throw;
  }
  callEnd();
  leave.well = true;
}

/// Calls the listeners for the end if no generation has, because the training ended between two.
void ParallelWrapper::Impl::ElasticFit::callEnd() {
  if (std::exchange(parts_->ended, true)) return;
  forEachAtEnd(wrapper_.listeners_, [&](Listener& listener) {
    if (std::ranges::find(parts_->started, &listener) == parts_->started.end()) return;
    wrapper_.caller_.set(Activity::Kind::InListener);
    try {
      listener.onFitEnd(wrapper_);
    } catch (const std::exception& error) {
      logWarning("a listener failed at the end: {}", error.what());
    }
  });
  wrapper_.caller_.set(Activity::Kind::WaitingForWorkers);
}

/// @return whether another generation follows.
bool ParallelWrapper::Impl::ElasticFit::trainGeneration() {
  try {
    if (!nodes_.next([this] { return wrapper_.stop_.load(); })) return false;
  } catch (const NodeFailure& failure) {
    throwFailed(failure);
  }
  Model& model = wrapper_.model_;
  std::string problem;
  try {
    if (NodeLink* const link = nodes_.link().get()) shareModel(*link, model, inTraining_);
    inTraining_ = true;
    const auto position = namingResumedFile(model, [&] { return positionIn(model.trainingState()); });
    logInfo("generation {}: this is node {} of {}, from iteration {} (epoch {}, after {} of it)",
            nodes_.generation().number, nodes_.node(), nodes_.nodes(), model.iteration(), model.epoch() + 1,
            plural(position ? position->nextBatch : 0, "batch", "batches"));
    wrapper_.beginSession();
    return model.epoch() < lastEpoch_ && wrapper_.fitHere(data_, lastEpoch_ - model.epoch(), &*parts_);
  } catch (const TrainingError& error) {
    if (!isOfAnotherNode(error.cause())) throw;
    problem = error.what();
  } catch (const NodeFailure& failure) {
    problem = failure.what();
  }
  if (NodeLink* const link = nodes_.link().get()) link->fail();
  logWarning("generation {} has ended: {}", nodes_.generation().number, problem);
  return true;
}

}  // namespace muster
