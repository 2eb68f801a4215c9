#include "muster/parallel/parallel_wrapper.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/parallel/detail/internals.h"
#include "muster/parallel/evaluation/evaluation_run.h"
#include "muster/parallel/runtime/owner.h"
#include "muster/parallel/runtime/stall_watch.h"
#include "muster/parallel/runtime/watched_iterator.h"
#include "muster/parallel/strategies/averaging.h"
#include "muster/parallel/strategies/shared_gradients.h"
#include "muster/parallel/strategies/synchronous_gradients.h"
#include "muster/parallel/training/dispatcher.h"
#include "muster/parallel/training/replica_set.h"

namespace muster {
namespace {

/// About as long as a step of a small network takes on a GPU: what workers that share one come apart by.
constexpr std::chrono::microseconds kPatience{200};

/// What `reportScoreAfterAveraging(true)` adds.
class ReportListener final : public Listener {
 public:
  void onMerge(const MergeEvent& event) override {
    logInfo("iteration {}: score {:.6f} after averaging in {:.3f} ms", event.iteration, event.score,
            std::chrono::duration<double, std::milli>(event.mergeTime).count());
  }
};

std::optional<std::int64_t> batchesPerEpoch(const DataSetIterator& data) {
  try {
    return data.batchesPerEpoch();
  } catch (...) {
    const auto cause = std::current_exception();
    throw TrainingError(fmt::format("the data iterator failed to tell its size: {}", describe(cause)), -1,
                        cause);
  }
}

detail::Internals internalsOf(const ParallelOptions& options) {
  return options.internals ? *options.internals : detail::Internals{};
}

Placements place(const ParallelOptions& options) {
  return placeAndClaim(options.workers, options.devices, options.threadsPerWorker, options.pinThreads,
                       options.mathMode);
}

std::unique_ptr<Strategy> makeStrategy(const ParallelOptions& options) {
  switch (options.trainingMode) {
    case TrainingMode::SynchronousGradients:
      return std::make_unique<SynchronousGradients>();
    case TrainingMode::SharedGradients:
      return std::make_unique<SharedGradients>(options.sharedGradients);
    case TrainingMode::Averaging:
      break;
  }
  return std::make_unique<PeriodicAveraging>(options.averagingFrequency, options.synchronousUntil,
                                             options.measureDivergence);
}

}  // namespace

struct ParallelWrapper::Impl final : Trainer {
  Impl(Model& model, ParallelOptions options);

  // Trainer
  Model& model() override;
  int workers() const override { return options_.workers; }
  void stopFit() override { stop_ = true; }
  std::vector<WorkerTimes> workerTimes() const override { return replicas_.times(); }

  Evaluation evaluate(DataSetIterator& data) override;

  void fit(DataSetIterator& data, std::int64_t epochs);
  std::string plan() const;

  bool running() const { return running_; }

  const ParallelOptions options_;
  const OwnerProcess owner;

 private:
  /// While it lives, the wrapper is at work for the thread that made it.
  class Call;

  bool prepareModel(DataSetIterator& data, std::int64_t epoch);
  void prepareReplicas(DataSetIterator& data);
  void run(DataSetIterator& data, std::int64_t epochs);
  void train(FitRun& run, DataSetIterator& data, std::int64_t epochs);
  void coordinate(FitRun& run, std::int64_t epochs);
  bool joinMeeting(const FitRun& run, std::int64_t lastEpoch);
  void fillModel(const FitRun& run);
  void fillAtEnd(FitRun& run);
  bool inListener() const;
  Evaluation evaluateOnWorkers(DataSetIterator& data);
  std::vector<StallWatch::Subject> everybody() const;
  Listeners listenersOf(ListenerScope scope) const;

  /// One listener's call, on the thread that called `fit()`.
  template <typename Call>
  void tell(Listener& listener, Call call) {
    caller_.set(Activity::Kind::InListener);
    call(listener);
    caller_.set(Activity::Kind::WaitingForWorkers);
  }
  template <typename Call>
  void tellAll(Call call) {
    for (const auto& listener : all_) tell(*listener, call);
  }
  /// As `tellAll`; the first exception becomes the run's failure. @return false if there was one.
  template <typename Call>
  bool tellAll(FitRun& run, std::string_view when, Call call) {
    try {
      tellAll(call);
      return true;
    } catch (...) {
      run.fail(-1, std::current_exception(), [&] { return fmt::format("a listener failed at {}", when); });
      return false;
    }
  }

  Model& model_;
  Listeners all_;  // the user's and our own
  const std::unique_ptr<Strategy> strategy_;
  const Placements placements_;
  std::vector<std::unique_ptr<Batch>> batches_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> running_{false};
  std::atomic<std::thread::id> callersThread_;  // of the call that is running
  FitRun* inMeeting_ = nullptr;                 // the coordinator has joined a meeting of it: no worker runs
  std::int64_t filledMeetings_ = 0;             // meetings of the run that the user's model reflects
  Activity caller_, reading_;
  ReplicaSet replicas_;  // from here on, threads: they end before what they use
  TaskThread reader_{"the reader"};
  StallWatch watch_;
};

ParallelWrapper::Impl::Impl(Model& model, ParallelOptions options)
    : options_(std::move(options)),
      model_(model),
      all_(options_.listeners),
      strategy_(makeStrategy(options_)),
      placements_(place(options_)),
      replicas_(model, placements_.workers, options_.threadsPerWorker, options_.averageUpdaters,
                strategy_->localWork(), internalsOf(options_)),
      watch_(everybody(), internalsOf(options_).stallPatience) {
  if (options_.reportScoreAfterAveraging) all_.push_back(std::make_shared<ReportListener>());
  for (std::int64_t i = 0; i < options_.prefetchBuffer + options_.workers; ++i)
    batches_.push_back(std::make_unique<Batch>());
}

std::vector<StallWatch::Subject> ParallelWrapper::Impl::everybody() const {
  std::vector<StallWatch::Subject> all = {{"the caller", &caller_}, {"the reader", &reading_}};
  for (const auto* thread : replicas_.threads())
    all.push_back({fmt::format("worker {}", thread->index()), &thread->activity()});
  return all;
}

std::string ParallelWrapper::Impl::plan() const {
  const auto batches = options_.averagingFrequency * options_.workers;
  const auto merging = replicas_.merging();
  return fmt::format("{}, {}{}{}: {} batch{} a round", describe(placements_, options_.threadsPerWorker),
                     strategy_->describe(), merging.empty() ? "" : ", ", merging, batches,
                     batches == 1 ? "" : "es");
}

Model& ParallelWrapper::Impl::model() {
  if (inMeeting_) fillModel(*inMeeting_);
  return model_;
}

Listeners ParallelWrapper::Impl::listenersOf(ListenerScope scope) const {
  Listeners some;
  for (const auto& listener : all_)
    if (listener->scope() == scope) some.push_back(listener);
  return some;
}

class ParallelWrapper::Impl::Call {
 public:
  /// `running_` has just been set.
  explicit Call(Impl& wrapper) : wrapper_(wrapper) { wrapper_.callersThread_ = std::this_thread::get_id(); }
  ~Call() {
    wrapper_.caller_.set(Activity::Kind::Idle);
    wrapper_.callersThread_ = std::thread::id();
    wrapper_.running_ = false;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  Impl& wrapper_;
};

void ParallelWrapper::Impl::fit(DataSetIterator& data, std::int64_t epochs) {
  require(epochs >= 0, "fit: epochs cannot be negative, got {}", epochs);
  require(!running_.exchange(true),
          "fit: it is already running; a listener or another thread called it again");
  const Call call(*this);
  stop_ = false;
  const StallWatch::Shift shift(watch_, "fit()");
  for (const auto& worker : replicas_.workers()) worker->resetTimes();
  if (epochs > 0) prepareReplicas(data);
  run(data, epochs);
}

/// @return false if there is no batch to prepare it for.
bool ParallelWrapper::Impl::prepareModel(DataSetIterator& data, std::int64_t epoch) {
  Batch first;
  WatchedIterator reading(data, caller_);
  std::string where;
  try {
    reading.reset(epoch);
    if (!reading.next(first)) return false;
    where = "the model could not be prepared for its first batch";
    model_.prepare(first);
    return true;
  } catch (...) {
    const auto cause = std::current_exception();
    throw TrainingError(
        fmt::format("{}: {}", where.empty() ? reading.failure() : where, muster::describe(cause)), -1, cause);
  }
}

void ParallelWrapper::Impl::prepareReplicas(DataSetIterator& data) {
  if (!replicas_.made()) {
    const bool any = prepareModel(data, model_.epoch());
    require(any || !model_.blocks().empty(), "fit: the data set has no batches");
    caller_.set(Activity::Kind::WaitingForWorkers);
    replicas_.make();
  }
  caller_.set(Activity::Kind::WaitingForWorkers);
  replicas_.spread();
  strategy_->begin(replicas_.exchange());
  replicas_.setTrained(true);
}

void ParallelWrapper::Impl::run(DataSetIterator& data, std::int64_t epochs) {
  FitRun run(options_.workers, batches_, *strategy_, stop_, !listenersOf(ListenerScope::Merged).empty(),
             model_.iteration(), model_.epoch(), replicas_.made() ? &replicas_.exchange() : nullptr,
             placements_.coresToSpare ? kPatience : std::chrono::nanoseconds(0));
  filledMeetings_ = 0;
  const FitEvent start{*this, model_.epoch(), epochs, batchesPerEpoch(data)};
  const EpochEvent firstEpoch{*this, model_.epoch(), model_.iteration(), 0, 0};
  if (tellAll(run, "the start", [&](Listener& l) { l.onFitStart(start); }) && epochs > 0 &&
      tellAll(run, "the start of an epoch", [&](Listener& l) { l.onEpochStart(firstEpoch); }))
    train(run, data, epochs);
  if (run.failed())
    replicas_.setTrained(false);  // their state may be anything: it comes from the model again
  fillAtEnd(run);
  for (const auto& listener : all_) try {  // each hears of the end, whatever the others do
      tell(*listener, [&](Listener& l) { l.onFitEnd(*this); });
    } catch (...) {
      run.fail(-1, std::current_exception(), [] { return "a listener failed at the end"; });
    }
  run.rethrow();
}

void ParallelWrapper::Impl::train(FitRun& run, DataSetIterator& data, std::int64_t epochs) {
  WorkerListeners workerListeners{*this, listenersOf(ListenerScope::Worker), {}};
  Tasks tasks;
  try {
    for (const auto& worker : replicas_.workers())
      worker->train(tasks, run, epochs, replicas_.exchange(), workerListeners);
    tasks.add(reader_, [&run, &data, workers = options_.workers, epochs, &activity = reading_] {
      dispatch(run, data, workers, epochs, activity);
    });
    tasks.start();
    coordinate(run, epochs);
  } catch (...) {
    run.fail(-1, std::current_exception(), [] { return "the workers could not be started"; });
  }
  tasks.wait();
}

void ParallelWrapper::Impl::coordinate(FitRun& run, std::int64_t epochs) {
  const std::int64_t lastEpoch = run.firstEpoch() + epochs - 1;
  bool more = true;
  caller_.set(Activity::Kind::WaitingForWorkers);
  while (more && run.awaitMeeting()) {
    inMeeting_ = &run;
    try {
      more = joinMeeting(run, lastEpoch);
    } catch (...) {
      run.fail(-1, std::current_exception(),
               [&] { return fmt::format("a listener failed after iteration {}", run.meeting().iteration); });
    }
    inMeeting_ = nullptr;
    run.resume();
  }
  run.closeQueues();  // after a stop, batches that nobody will take may be under way
}

bool ParallelWrapper::Impl::joinMeeting(const FitRun& run, std::int64_t lastEpoch) {
  const auto& meeting = run.meeting();
  if (meeting.merging) {
    const MergeEvent event{.trainer = *this,
                           .epoch = meeting.epoch,
                           .iteration = meeting.iteration,
                           .batchesInEpoch = meeting.batchesInEpoch,
                           .examples = meeting.examples,
                           .score = meeting.score,
                           .mergeTime = run.mergeTime(),
                           .bytes = run.exchangedBytes(),
                           .divergence = run.divergence()};
    for (const auto& listener : all_)
      if (listener->scope() == ListenerScope::Merged) tell(*listener, [&](Listener& l) { l.onMerge(event); });
  }
  if (meeting.verdict != Verdict::EpochOver) return meeting.verdict != Verdict::Stop;
  EpochEvent event{*this, meeting.epoch, meeting.iteration, 0, meeting.examplesInEpoch};
  if (meeting.weightInEpoch > 0) event.score = meeting.scoreSumInEpoch / meeting.weightInEpoch;
  tellAll([&](Listener& l) { l.onEpochEnd(event); });
  if (meeting.epoch == lastEpoch) return false;
  const EpochEvent next{*this, meeting.epoch + 1, meeting.iteration, 0, 0};
  // After a stop the workers hold one more meeting, but no epoch begins.
  if (!stop_) tellAll([&](Listener& l) { l.onEpochStart(next); });
  return true;
}

void ParallelWrapper::Impl::fillModel(const FitRun& run) {
  if (filledMeetings_ == run.settledMeetings()) return;
  const auto& meeting = run.settledMeeting();
  const bool filled = replicas_.fill();
  filledMeetings_ = run.settledMeetings();
  if (!filled) return;
  model_.setCounters(meeting.iteration, meeting.epoch + (meeting.verdict == Verdict::EpochOver ? 1 : 0));
  if (meeting.merges > 0) model_.setScore(meeting.score);
}

/// A lost device takes what was merged last with it, and is then mostly why the training has failed.
void ParallelWrapper::Impl::fillAtEnd(FitRun& run) {
  try {
    fillModel(run);
  } catch (...) {
    const auto cause = std::current_exception();
    replicas_.setTrained(false);  // first: below, memory may run out
    constexpr std::string_view what = "the model could not be filled with what was merged last";
    if (run.failed()) try {
        logWarning("{}, and keeps what it had before: {}", what, describe(cause));
      } catch (...) {  // no memory for the line: it is lost, and listeners still hear of the end
      }
    run.fail(-1, cause, [&] { return what; });
  }
}

/// Whether this is a listener's call on the thread that called `fit()`: then no worker runs.
bool ParallelWrapper::Impl::inListener() const {
  return callersThread_.load() == std::this_thread::get_id() && caller_.kind() == Activity::Kind::InListener;
}

Evaluation ParallelWrapper::Impl::evaluate(DataSetIterator& data) {
  if (!running_.exchange(true)) {
    const Call call(*this);
    const StallWatch::Shift shift(watch_, "evaluate()");
    return evaluateOnWorkers(data);
  }
  require(inListener(),
          "evaluate: the wrapper is at work; while fit() runs only its listeners may evaluate, in calls on "
          "the thread that called fit(), so not in onIteration");
  struct BackInListener {
    Activity& caller;
    ~BackInListener() { caller.set(Activity::Kind::InListener); }
  } back{caller_};
  return evaluateOnWorkers(data);
}

Evaluation ParallelWrapper::Impl::evaluateOnWorkers(DataSetIterator& data) {
  model_.block(BlockKind::Parameters);  // throws where the model is not initialised
  if (!replicas_.made()) {
    require(prepareModel(data, 0), "evaluate: the data set has no batches");
    caller_.set(Activity::Kind::WaitingForWorkers);
    replicas_.make();
  }
  // One more batch a worker keeps all busy. The batches are the evaluation's own: those of a training may be
  // full of data that was read ahead, and an iterator may have put its own memory into a batch.
  const auto ahead = std::min<std::int64_t>(options_.prefetchBuffer, options_.workers);
  EvaluationRun evaluation(model(), replicas_.threads(), ahead);
  if (!inMeeting_) return evaluation.evaluate(data, caller_);
  if (!inMeeting_->beginErrand([&](int worker) { evaluation.work(worker); }))
    throw Error("evaluate: the training has failed meanwhile, and its workers have left");
  evaluation.deal(data, caller_);
  evaluation.awaitWork();
  inMeeting_->endErrand();
  return evaluation.result();
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
  usable(impl_, "fit").fit(data, epochs);
}
Evaluation ParallelWrapper::evaluate(DataSetIterator& data) {
  return usable(impl_, "evaluate").evaluate(data);
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
