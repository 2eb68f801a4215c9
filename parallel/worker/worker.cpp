#include "muster/parallel/worker/worker.h"

#include "muster/core/base/error.h"

namespace muster {

using Clock = std::chrono::steady_clock;

Worker::Worker(int index, Placement placement, int threads)
    : index_(index), placement_(std::move(placement)), threads_(threads) {
  times_.worker = index_;
  times_.device = placement_.device;
  publishedTimes_ = times_;
  thread_ = std::jthread([this] {
    while (auto task = tasks_.pop()) (*task)();
    replica_.reset();
    context_.reset();
  });
}

Worker::~Worker() {
  tasks_.close();
}

std::future<void> Worker::submit(std::function<void()> task) {
  std::packaged_task<void()> packaged(std::move(task));
  auto future = packaged.get_future();
  tasks_.push(std::move(packaged));
  return future;
}

std::future<void> Worker::replicate(const Model& model) {
  return submit([this, &model] {
    if (!context_)
      context_ = std::make_unique<Context>(placement_.device,
                                           ContextOptions{.threads = threads_, .cores = placement_.cores});
    replica_ = model.replicate(*context_);
    require(replica_ != nullptr, "worker {}: the model's replicate() returned nothing", index_);
    replica_->state();  // the updater's state is allocated here, on this thread
  });
}

std::future<void> Worker::train(FitRun& run, std::int64_t epochs, Collective& collective,
                                WorkerListeners& listeners) {
  return submit([this, &run, epochs, &collective, &listeners] {
    times_ = {.worker = index_, .device = placement_.device};
    current_ = {};
    try {
      trainEpochs(run, epochs, collective, listeners);
    } catch (...) {
      run.fail(index_,
               fmt::format("worker {} on {} failed in batch {} of epoch {}", index_,
                           placement_.device.toString(), current_.sequence, current_.epoch),
               std::current_exception());
    }
    publishTimes();
    activity_.set(Activity::Kind::Idle);
  });
}

void Worker::trainEpochs(FitRun& run, std::int64_t epochs, Collective& collective,
                         WorkerListeners& listeners) {
  for (std::int64_t e = 0; e < epochs; ++e) {
    contribution_ = {};
    for (Verdict verdict = Verdict::Continue; verdict != Verdict::EpochOver;) {
      if (!runRound(run, listeners)) return;
      verdict = run.meet(index_, contribution_, collective, *context_, times_, activity_);
      publishTimes();
      if (verdict == Verdict::Aborted) return;
      const bool over = verdict == Verdict::EpochOver;
      replica_->setCounters(run.meeting().iteration, run.meeting().epoch + (over ? 1 : 0));
      if (verdict == Verdict::Stop) return;
      contribution_ = {.epochIterations = contribution_.epochIterations, .ended = contribution_.ended};
    }
  }
}

bool Worker::runRound(FitRun& run, WorkerListeners& listeners) {
  for (std::int64_t done = 0; done < run.quota() && !contribution_.ended && !run.stopping(); ++done) {
    activity_.set(Activity::Kind::WaitingForData);
    const auto begin = Clock::now();
    const auto batch = run.queue(index_).pop();
    times_.waitingForData += Clock::now() - begin;
    if (!batch) return false;
    if (*batch == nullptr) {
      contribution_.ended = true;
      break;
    }
    step(**batch, listeners);
    if (!run.freeBatches().push(*batch)) return false;
  }
  if (run.stopping()) giveBackBatches(run);
  return true;
}

void Worker::giveBackBatches(FitRun& run) {
  while (const auto batch = run.queue(index_).tryPop())
    if (*batch) run.freeBatches().push(*batch);
}

void Worker::step(Batch& batch, WorkerListeners& listeners) {
  current_ = batch.stamp;
  activity_.set(Activity::Kind::Computing, batch.stamp.sequence);
  const auto begin = Clock::now();
  const StepScore score = replica_->step(batch).wait();
  requireFinite(score, batch.stamp);
  times_.computing += Clock::now() - begin;
  const std::int64_t examples = batch.examples();
  ++times_.batches;
  times_.examples += examples;
  contribution_.scoreSum += score.score * score.weight;
  contribution_.weight += score.weight;
  contribution_.examples += examples;
  ++contribution_.batches;
  ++contribution_.epochIterations;
  if (listeners.listeners.empty()) return;
  activity_.set(Activity::Kind::InListener, batch.stamp.sequence);
  const IterationEvent event{listeners.trainer, index_, batch.stamp, examples, score.score};
  std::scoped_lock lock(listeners.mutex);
  for (const auto& listener : listeners.listeners) listener->onIteration(event);
}

void Worker::publishTimes() {
  std::scoped_lock lock(timesMutex_);
  publishedTimes_ = times_;
}

WorkerTimes Worker::times() const {
  std::scoped_lock lock(timesMutex_);
  return publishedTimes_;
}

}  // namespace muster
