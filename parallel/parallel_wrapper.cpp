#include "muster/parallel/parallel_wrapper.h"

#include <atomic>
#include <future>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/ops/merge.h"
#include "muster/parallel/averaging/periodic_averaging.h"
#include "muster/parallel/collective/host_collective.h"
#include "muster/parallel/worker/dispatcher.h"
#include "muster/parallel/worker/worker.h"

namespace muster {

using namespace std::chrono_literals;

namespace {

constexpr auto kStallPatience = 10s;

/// What `reportScoreAfterAveraging(true)` adds.
class ReportListener final : public Listener {
 public:
  void onMerge(const MergeEvent& event) override {
    logInfo("iteration {}: score {:.6f} after averaging in {:.3f} ms", event.iteration, event.score,
            std::chrono::duration<double, std::milli>(event.mergeTime).count());
  }
};

}  // namespace

struct ParallelWrapper::Impl final : Trainer {
  Impl(Model& model, ParallelOptions options);

  // Trainer
  Model& model() override;
  int workers() const override { return options_.workers; }
  void stopFit() override { stop_ = true; }
  std::vector<WorkerTimes> workerTimes() const override;

  void fit(DataSetIterator& data, std::int64_t epochs);
  std::string plan() const;

  const ParallelOptions options_;

 private:
  void makeReplicas(DataSetIterator& data);
  void spreadModel();
  void run(DataSetIterator& data, std::int64_t epochs);
  void coordinate(FitRun& run, std::int64_t epochs, const Activity& reading);
  bool joinMeeting(const FitRun& run, std::int64_t lastEpoch);
  void takeCounters(const FitRun::Meeting& meeting);
  void awaitEnd(std::vector<std::future<void>>& ends, const Activity& reading);
  void logStall(const Activity& reading) const;
  void fillModel();

  template <typename Call>
  void tell(Call call) {
    for (const auto& listener : all_) call(*listener);
  }
  /// Calls the listeners; the first exception becomes the run's failure.
  template <typename Call>
  bool tellSafely(FitRun& run, std::string_view when, Call call) {
    try {
      tell(call);
      return true;
    } catch (...) {
      run.fail(-1, fmt::format("a listener failed at {}", when), std::current_exception());
      return false;
    }
  }

  Model& model_;
  Listeners all_;  // the user's and our own
  PeriodicAveraging strategy_;
  std::vector<Placement> placements_;  // [worker]
  std::vector<std::unique_ptr<Batch>> batches_;
  std::unique_ptr<HostCollective> collective_;  // made with the replicas
  std::atomic<bool> stop_{false};
  std::atomic<bool> running_{false};
  bool workersKeepUpdaterState_ = false;          // after a fit with averageUpdaters(false)
  bool inMeeting_ = false;                        // the coordinator has joined a meeting: no worker runs
  bool modelIsStale_ = false;                     // the shadow is newer than the user's model
  std::vector<std::unique_ptr<Worker>> workers_;  // [worker] last: threads end before what they use
};

ParallelWrapper::Impl::Impl(Model& model, ParallelOptions options)
    : options_(std::move(options)),
      model_(model),
      all_(options_.listeners),
      strategy_(options_.averagingFrequency),
      placements_(placeWorkers(options_.workers, options_.devices, options_.threadsPerWorker,
                               options_.pinThreads, availableCores())) {
  if (options_.reportScoreAfterAveraging) all_.push_back(std::make_shared<ReportListener>());
  for (std::int64_t i = 0; i < options_.prefetchBuffer + options_.workers; ++i)
    batches_.push_back(std::make_unique<Batch>());
}

std::string ParallelWrapper::Impl::plan() const {
  const auto batches = options_.averagingFrequency * options_.workers;
  return fmt::format("{}, {}: {} batch{} a round", describe(placements_, options_.threadsPerWorker),
                     strategy_.describe(), batches, batches == 1 ? "" : "es");
}

std::vector<WorkerTimes> ParallelWrapper::Impl::workerTimes() const {
  std::vector<WorkerTimes> times;
  for (const auto& worker : workers_) times.push_back(worker->times());
  return times;
}

Model& ParallelWrapper::Impl::model() {
  if (inMeeting_ && modelIsStale_) fillModel();
  return model_;
}

void ParallelWrapper::Impl::makeReplicas(DataSetIterator& data) {
  if (collective_) return;
  Batch first;
  try {
    data.reset(model_.epoch());
    if (data.next(first)) model_.prepare(first);
  } catch (...) {
    throw TrainingError(
        fmt::format("the first batch could not be used: {}", muster::describe(std::current_exception())), -1,
        std::current_exception());
  }
  std::vector<std::future<void>> made;
  std::vector<std::unique_ptr<Worker>> workers;
  for (int w = 0; w < options_.workers; ++w) {
    workers.push_back(std::make_unique<Worker>(w, placements_[w], options_.threadsPerWorker));
    made.push_back(workers.back()->replicate(model_));
  }
  for (auto& future : made) future.wait();
  for (int w = 0; w < options_.workers; ++w) {
    try {
      made[w].get();
    } catch (...) {
      throw TrainingError(
          fmt::format("worker {} on {} could not be made: {}", w, placements_[w].device.toString(),
                      muster::describe(std::current_exception())),
          w, std::current_exception());
    }
  }
  std::vector<std::vector<StateBlock*>> states;
  for (auto& worker : workers) states.push_back(worker->replica().state());
  collective_ = std::make_unique<HostCollective>(states, options_.averageUpdaters);
  workers_ = std::move(workers);
}

void ParallelWrapper::Impl::spreadModel() {
  const bool withUpdaterState = !workersKeepUpdaterState_;
  std::vector<std::future<void>> copied;
  for (auto& worker : workers_)  // on its own thread: the memory is first touched where it is used
    copied.push_back(worker->submit(
        [this, &worker, withUpdaterState] { worker->replica().copyStateFrom(model_, withUpdaterState); }));
  for (auto& future : copied) future.wait();
  for (auto& future : copied) future.get();
  const auto state = model_.state();
  for (const auto& shared : collective_->blocks())
    for (auto* block : state)
      if (block->name == shared.name && block->kind == shared.kind) {
        Tensor shadow = shared.shadow;
        copy(block->values, shadow);
      }
  modelIsStale_ = false;
}

void ParallelWrapper::Impl::fillModel() {
  const auto state = model_.state();
  for (const auto& shared : collective_->blocks()) {
    Tensor shadow = shared.shadow;
    if (shared.rule == MergeRule::Keep && workersKeepUpdaterState_) {
      // Never merged: the mean is made now, without touching the workers' own.
      std::vector<Tensor> copies;
      std::vector<double> weights;
      double total = 0;
      for (std::size_t w = 0; w < workers_.size(); ++w) {
        copies.push_back(cloneTensor(shared.replicas[w]));
        weights.push_back(static_cast<double>(workers_[w]->times().examples));
        total += weights.back();
      }
      if (total > 0) weightedMean(copies, weights, shadow, 0, shadow.elements(), model_.context());
    }
    for (auto* block : state)
      if (block->name == shared.name && block->kind == shared.kind)
        copy(shadow, block->values, model_.context());
  }
  modelIsStale_ = false;
}

void ParallelWrapper::Impl::fit(DataSetIterator& data, std::int64_t epochs) {
  require(epochs >= 0, "fit: epochs cannot be negative, got {}", epochs);
  require(!running_.exchange(true),
          "fit: it is already running; a listener or another thread called it again");
  struct Done {
    std::atomic<bool>& running;
    ~Done() { running = false; }
  } done{running_};
  stop_ = false;
  makeReplicas(data);
  spreadModel();
  if (epochs > 0) run(data, epochs);
}

void ParallelWrapper::Impl::run(DataSetIterator& data, std::int64_t epochs) {
  WorkerListeners workerListeners{*this, {}, {}};
  bool mergedListeners = false;
  for (const auto& listener : all_) {
    if (listener->scope() == ListenerScope::Worker)
      workerListeners.listeners.push_back(listener);
    else
      mergedListeners = true;
  }
  FitRun run(options_.workers, batches_, strategy_, stop_, mergedListeners, model_.iteration(),
             model_.epoch());
  workersKeepUpdaterState_ = !options_.averageUpdaters;

  std::optional<std::int64_t> batchesPerEpoch;
  if (const auto examples = data.examples(), size = data.batchSize(); examples && size && *size > 0)
    batchesPerEpoch = (*examples + *size - 1) / *size;
  const FitEvent start{*this, model_.epoch(), epochs, batchesPerEpoch};
  const EpochEvent firstEpoch{*this, model_.epoch(), model_.iteration(), 0, 0};
  Activity reading;
  if (tellSafely(run, "the start", [&](Listener& l) { l.onFitStart(start); }) &&
      tellSafely(run, "the start of an epoch", [&](Listener& l) { l.onEpochStart(firstEpoch); })) {
    std::vector<std::future<void>> ends;
    for (auto& worker : workers_) ends.push_back(worker->train(run, epochs, *collective_, workerListeners));
    std::packaged_task<void()> dispatching([&] { dispatch(run, data, options_.workers, epochs, reading); });
    ends.push_back(dispatching.get_future());
    std::jthread dispatcher(std::move(dispatching));
    coordinate(run, epochs, reading);
    awaitEnd(ends, reading);
  }
  if (run.failed())
    workersKeepUpdaterState_ = false;  // their state may be anything: it comes from the model again
  if (run.meetings() > 0) takeCounters(run.meeting());
  fillModel();
  tellSafely(run, "the end", [&](Listener& l) { l.onFitEnd(*this); });
  run.rethrow();
}

void ParallelWrapper::Impl::coordinate(FitRun& run, std::int64_t epochs, const Activity& reading) {
  const std::int64_t lastEpoch = run.firstEpoch() + epochs - 1;
  bool more = true;
  while (more && run.awaitMeeting(kStallPatience, [&] { logStall(reading); })) {
    inMeeting_ = true;
    try {
      more = joinMeeting(run, lastEpoch);
    } catch (...) {
      run.fail(-1, fmt::format("a listener failed after iteration {}", run.meeting().iteration),
               std::current_exception());
    }
    inMeeting_ = false;
    run.resume();
  }
  run.closeQueues();  // after a stop, batches that nobody will take may be under way
}

void ParallelWrapper::Impl::takeCounters(const FitRun::Meeting& meeting) {
  model_.setCounters(meeting.iteration, meeting.epoch + (meeting.verdict == Verdict::EpochOver ? 1 : 0));
  if (meeting.merges) model_.setScore(meeting.score);
}

bool ParallelWrapper::Impl::joinMeeting(const FitRun& run, std::int64_t lastEpoch) {
  const auto& meeting = run.meeting();
  const bool over = meeting.verdict == Verdict::EpochOver;
  modelIsStale_ = true;
  takeCounters(meeting);
  if (meeting.merges) {
    const MergeEvent event{.trainer = *this,
                           .epoch = meeting.epoch,
                           .iteration = meeting.iteration,
                           .batchesInEpoch = meeting.batchesInEpoch,
                           .examples = meeting.examples,
                           .score = meeting.score,
                           .mergeTime = run.mergeTime()};
    tell([&](Listener& l) {
      if (l.scope() == ListenerScope::Merged) l.onMerge(event);
    });
  }
  if (!over) return meeting.verdict != Verdict::Stop;
  EpochEvent event{*this, meeting.epoch, meeting.iteration, 0, meeting.examplesInEpoch};
  if (meeting.weightInEpoch > 0) event.score = meeting.scoreSumInEpoch / meeting.weightInEpoch;
  tell([&](Listener& l) { l.onEpochEnd(event); });
  if (meeting.epoch == lastEpoch) return false;
  const EpochEvent next{*this, meeting.epoch + 1, meeting.iteration, 0, 0};
  tell([&](Listener& l) { l.onEpochStart(next); });
  return true;
}

void ParallelWrapper::Impl::awaitEnd(std::vector<std::future<void>>& ends, const Activity& reading) {
  for (auto& end : ends)
    while (end.wait_for(kStallPatience) != std::future_status::ready) logStall(reading);
}

void ParallelWrapper::Impl::logStall(const Activity& reading) const {
  std::string text;
  const auto add = [&](std::string who, const std::string& what) {
    if (!what.empty()) text += fmt::format("{}{} is {}", text.empty() ? "" : "; ", who, what);
  };
  add("the reader", reading.describe());
  for (const auto& worker : workers_)
    add(fmt::format("worker {}", worker->index()), worker->activity().describe());
  logWarning("fit() has waited {} s for a merge or its end: {}", kStallPatience.count(), text);
}

ParallelWrapper::ParallelWrapper(Model& model, const ParallelOptions& options)
    : impl_(std::make_unique<Impl>(model, options)) {}
ParallelWrapper::~ParallelWrapper() = default;
ParallelWrapper::ParallelWrapper(ParallelWrapper&&) noexcept = default;
ParallelWrapper& ParallelWrapper::operator=(ParallelWrapper&&) noexcept = default;

void ParallelWrapper::fit(DataSetIterator& data, std::int64_t epochs) {
  impl_->fit(data, epochs);
}
void ParallelWrapper::stopFit() noexcept {
  impl_->stopFit();
}
std::vector<WorkerTimes> ParallelWrapper::workerTimes() const {
  return impl_->workerTimes();
}
std::string ParallelWrapper::plan() const {
  return impl_->plan();
}
const ParallelOptions& ParallelWrapper::options() const {
  return impl_->options_;
}

}  // namespace muster
