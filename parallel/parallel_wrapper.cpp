#include "muster/parallel/parallel_wrapper.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/data/joining_iterator.h"
#include "muster/core/data/training_reads.h"
#include "muster/core/device/arithmetic_scope.h"
#include "muster/core/nn/training_use.h"
#include "muster/parallel/nodes/elastic/elastic_nodes.h"
#include "muster/parallel/nodes/node_link.h"
#include "muster/parallel/wrapper_impl.h"

namespace muster {
namespace {

/// About as long as a step of a small network takes on a GPU; workers that share a GPU differ by that much.
/// Also on the CPU, if no reader needs a worker's core.
constexpr std::chrono::microseconds kPatience{200};
/// About as long as a sleep and a wake-up; not longer, because the reader may need that core.
constexpr std::chrono::microseconds kShortPatience{20};

// Made beforehand: throwing a copy allocates nothing with operator new.
const OutOfMemory kShortageInFit("fit: memory has run out");
const OutOfMemory kShortageInEvaluate("evaluate: memory has run out");

template <typename Call>
auto orShortage(const OutOfMemory& shortage, Call call) try {
  return call();
} catch (const std::bad_alloc&) {
  throw shortage;
}

/// @param reader  whether a reader thread hands out the batches.
std::chrono::nanoseconds patienceOf(const Placements& placements, bool reader) {
  if (placements.coresToSpare || (placements.ownCores && !reader)) return kPatience;
  return placements.ownCores ? kShortPatience : std::chrono::nanoseconds(0);
}

Placements place(const ParallelOptions& options) {
  return placeAndClaim(options.workers, options.devices, options.threadsPerWorker, options.pinThreads,
                       options.mathMode);
}

/// [worker] The sums of both. @param before  may be empty.
std::vector<WorkerTimes> sumOf(const std::vector<WorkerTimes>& before, std::vector<WorkerTimes> now) {
  for (std::size_t i = 0; i < std::min(before.size(), now.size()); ++i) {
    now[i].batches += before[i].batches;
    now[i].examples += before[i].examples;
    now[i].computing += before[i].computing;
    now[i].waitingForData += before[i].waitingForData;
    now[i].waitingForWorkers += before[i].waitingForWorkers;
    now[i].merging += before[i].merging;
  }
  return now;
}

}  // namespace

ParallelWrapper::Impl::Impl(Model& model, ParallelOptions options)
    : options_(std::move(options)), model_(model), placements_(place(options_)) {
  beginSession();
  // Throws here, rather than in the first step, if the model's updater cannot update its parameters.
  if (std::ranges::any_of(model.blocks(), [](auto& b) { return b.kind == BlockKind::Parameters; }))
    model.updaterState();
  if (const auto need = session_->memoryNeed()) need->requireRoom(internalsOf(options_).root);
  for (std::int64_t i = 0; i < options_.prefetchBuffer + options_.workers; ++i)
    batches_.push_back(std::make_unique<Batch>());
}

/// Makes everything that depends on the current nodes.
void ParallelWrapper::Impl::beginSession() {
  const Lock lock(timesMutex_);
  if (session_) timesBefore_ = sumOf(timesBefore_, replicas().times());
  session_.reset();
  session_ = std::make_unique<WrapperSession>(model_, options_, placements_, caller_, reading_);
}

std::vector<WorkerTimes> ParallelWrapper::Impl::workerTimes() const {
  const Lock lock(timesMutex_);
  return session_ ? sumOf(timesBefore_, replicas().times()) : timesBefore_;
}

Model& ParallelWrapper::Impl::model() {
  if (fit_ && fit_->atRoundEnd()) fit_->usersModel().lend();
  return model_;
}

/// Whether a listener makes this call on the thread that called `fit()`; no worker runs then.
bool ParallelWrapper::Impl::inListener() const {
  return callersThread_.load() == std::this_thread::get_id() && caller_.kind() == Activity::Kind::InListener;
}

void ParallelWrapper::Impl::copyReplica(int worker, Model& into) {
  require(inListener() && fit_ != nullptr,
          "copyReplica: only listeners may call it, on the thread that called fit()");
  fit_->usersModel().copyReplica(worker, into);
}

TrainingState ParallelWrapper::Impl::trainingState() {
  require(inListener(), "trainingState: only listeners may call it, on the thread that called fit()");
  if (fit_ == nullptr) return model_.trainingState();  // between the parts of a fit
  return fit_->usersModel().trainingState();
}

void ParallelWrapper::Impl::fit(DataSetIterator& users, std::int64_t epochs, const std::stop_token& stop) {
  require(epochs >= 0, "fit: epochs cannot be negative, got {}", epochs);
  require(!running_.exchange(true),
          "fit: it is already running; a listener or another thread called it again");
  const Call call(*this);
  FailingLink failing(options_.nodes.link());
  const TrainingUse use(model_);
  const TrainingReads reads(users);
  const ArithmeticScope arithmetic(model_.context().threads());
  JoiningIterator data(users, model_.trainingOptions().accumulate);
  stop_ = false;
  const std::stop_callback stopWhenAsked(stop, [this] { stop_ = true; });
  usersData_ = &users;
  if (!session_) beginSession();
  if (options_.nodes.elastic() && epochs > 0) {
    failing.dismiss();  // elastic nodes have other links later
    return fitOverElasticNodes(data, epochs);
  }
  {
    const Lock lock(timesMutex_);
    timesBefore_.clear();
  }
  fitHere(data, epochs, nullptr);
}

/// Trains with the current nodes. @return whether it has paused at the end of a round, to regroup.
bool ParallelWrapper::Impl::fitHere(DataSetIterator& data, std::int64_t epochs, FitParts* parts) {
  FailingLink failing(options_.nodes.link());
  const StallWatch::Scope scope(session_->watch(), "fit()");
  for (const auto& worker : replicas().workers()) worker->resetTimes();
  PreparedFit prepared = epochs > 0 ? session_->prepareFit(*usersData_, data, epochs, parts) : PreparedFit{};
  if (prepared.resumed.any) model_.setScore(prepared.resumed.ledger.begun.score);
  FitCall fit({.trainer = *this,
               .model = model_,
               .data = data,
               .replicas = replicas(),
               .options = options_.strategy,
               .batches = batches_,
               .listeners = session_->listeners(),
               .reader = reader_,
               .stop = stop_,
               .caller = caller_,
               .reading = reading_,
               .patience = patienceOf(placements_, prepared.numbered == nullptr),
               .prepared = prepared,
               .parts = parts});
  fit_ = &fit;
  struct NoFit {
    FitCall*& fit;
    ~NoFit() { fit = nullptr; }
  } noFit{fit_};
  failing.dismiss();
  try {
    fit.run(epochs);
  } catch (...) {
    if (parts) fit.usersModel().keepPlace();
    throw;
  }
  if (fit.regrouping()) fit.usersModel().keepPlace();
  return fit.regrouping();
}

ParallelWrapper::ParallelWrapper(Model& model, const ParallelOptions& options)
    : impl_(std::make_unique<Impl>(model, options)) {}
ParallelWrapper::~ParallelWrapper() {
  abandonInChild(impl_);
  if (!impl_ || !impl_->running()) return;
  log(LogLevel::Error,
      "a ParallelWrapper is destroyed while its fit() or evaluate() runs, perhaps by a listener; its threads "
      "cannot be ended, so the program ends");
  std::abort();
}
ParallelWrapper::ParallelWrapper(ParallelWrapper&&) noexcept = default;
ParallelWrapper& ParallelWrapper::operator=(ParallelWrapper&& other) noexcept {
  ParallelWrapper replaced(std::move(other));
  std::swap(impl_, replaced.impl_);
  return *this;
}

void ParallelWrapper::fit(DataSetIterator& data, std::int64_t epochs) {
  fit(data, epochs, {});
}
void ParallelWrapper::fit(DataSetIterator& data, std::int64_t epochs, const std::stop_token& stop) {
  orShortage(kShortageInFit, [&] { usable(impl_, "fit").fit(data, epochs, stop); });
}
void ParallelWrapper::fitUntil(DataSetIterator& data, std::int64_t epochs, const std::stop_token& stop) {
  fit(data, usable(impl_, "fitUntil").epochsUntil(epochs), stop);
}
AnyEvaluation ParallelWrapper::evaluateTask(DataSetIterator& data, std::optional<Task> task) {
  return orShortage(kShortageInEvaluate, [&] { return usable(impl_, "evaluate").evaluateTask(data, task); });
}
void ParallelWrapper::stopFit() noexcept {
  if (impl_) impl_->stopFit();
}
std::vector<WorkerTimes> ParallelWrapper::workerTimes() const {
  return usable(impl_, "workerTimes").workerTimes();
}
std::string ParallelWrapper::plan() const {
  return usable(impl_, "plan").plan();
}
const ParallelOptions& ParallelWrapper::options() const {
  return usable(impl_, "options").options_;
}

}  // namespace muster
