#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <optional>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/data/joining_iterator.h"
#include "muster/core/data/naming_batch.h"
#include "muster/core/data/next_batch.h"
#include "muster/core/data/non_finite_value.h"
#include "muster/core/data/training_reads.h"
#include "muster/core/device/arithmetic_scope.h"
#include "muster/core/nn/fit_remarks.h"
#include "muster/core/nn/mask_remark.h"
#include "muster/core/nn/model.h"
#include "muster/core/nn/scale_remark.h"
#include "muster/core/nn/shown_progress.h"
#include "muster/core/nn/state_recorder.h"
#include "muster/core/nn/training_use.h"

namespace muster {
namespace {

using Clock = std::chrono::steady_clock;

/// Made beforehand: throwing a copy allocates nothing with operator new.
const OutOfMemory kShortage("fit: memory has run out");

/// Returns the result of `call`; errors for data or a non-finite score name the batch.
template <typename Call>
auto named(const BatchStamp& stamp, Call call) {
  return namingBatch([&] { return stamp.toString(); }, std::move(call));
}

/// A model that trains by itself: one worker that merges after each step.
class Fit final : public Trainer {
 public:
  Fit(Model& model, DataSetIterator& data, const Listeners& listeners, std::atomic<bool>& stop)
      : model_(model),
        users_(data),
        data_(data, model.trainingOptions().accumulate),
        listeners_(recordersLast(listeners)),
        stop_(stop) {
    times_.device = model.context().device();
  }

  Model& model() override { return model_; }
  int workers() const override { return 1; }
  const DataSetIterator* trainingData() const override { return &users_; }
  void copyReplica(int worker, Model& into) override {
    require(worker == 0, "copyReplica: there is no worker {}, only worker 0", worker);
    into.copyStateFrom(model_);
  }
  void stopFit() override { stop_ = true; }
  std::vector<WorkerTimes> workerTimes() const override { return {times_}; }
  TrainingState trainingState() override {
    if (failed_) return {};
    return begun_ ? positionState(model_, data_, position_) : model_.trainingState();
  }

  void run(std::int64_t epochs) {
    const FitEvent start{*this, model_.epoch(), epochs, data_.batchesPerEpoch()};
    if (epochs > 0)
      if (const auto resumed = namingResumedFile(model_, [&] { return resumePosition(model_, data_); })) {
        position_ = *resumed;
        model_.setScore(position_.score);
      }
    if (epochs > 0) model_.fitBeforeTraining(users_);
    // A program that calls fit() for each epoch is not warned.
    if (epochs > 1 && start.batchesPerEpoch)
      for (const auto& remark : fitRemarks(model_, epochs, *start.batchesPerEpoch, 1))
        logWarning("fit: {}", remark);
    std::exception_ptr failure;  // the first failure
    try {
      notify([&](Listener& l) { l.onFitStart(start); });
      for (std::int64_t e = 0; e < epochs && !stop_; ++e) runEpoch(model_.epoch());
    } catch (...) {
      failure = std::current_exception();
      failed_ = true;
    }
    forEachAtEnd(listeners_, [&](Listener& listener) {
      try {  // notify all, even if one throws
        listener.onFitEnd(*this);
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    });
    if (failure) std::rethrow_exception(failure);
  }

 private:
  template <typename Call>
  void notify(Call call) {
    for (const auto& listener : listeners_) call(*listener);
  }

  void runEpoch(std::int64_t epoch) {
    EpochEvent event{*this, epoch, model_.iteration(), 0, 0};
    notify([&](Listener& l) { l.onEpochStart(event); });
    data_.reset(epoch);
    BatchStamp stamp{.sequence = position_.nextBatch, .epoch = epoch, .iteration = model_.iteration()};
    stamp.firstExample = skipTrained(data_, position_);
    std::optional<Step> before;  // its score is read while the next step runs
    while (!stop_ && nextBatch()) {
      if (position_.isTrained(stamp.sequence)) {
        ++stamp.sequence;
        stamp.firstExample += batch_.examples();
        continue;
      }
      batch_.stamp = stamp;
      const Step now = begin();
      ++stamp.sequence;
      ++stamp.iteration;
      stamp.firstExample += batch_.examples();
      model_.setCounters(stamp.iteration, epoch);
      if (before) finish(*before);
      before = now;
      // Listeners see the model after this step.
      if (listeners_.empty() && !now.ticket.known()) continue;
      namingValues(batch_, [&] { finish(now); });
      before.reset();
    }
    if (before) finish(*before);
    require(stop_ || stamp.sequence > 0, "fit: {}",
            trained_ ? fmt::format("the iterator gave no batches in epoch {}; does its reset() begin again?",
                                   epoch + 1)
                     : "the data set has no batches");
    trained_ = true;
    if (stop_) return;  // a stopped epoch does not count
    model_.setCounters(stamp.iteration, epoch + 1);
    event.iteration = stamp.iteration;
    event.score = position_.weight > 0 ? position_.scoreSum / position_.weight : 0;
    event.examples = stamp.firstExample;
    moveTo({.score = model_.score()});
    notify([&](Listener& l) { l.onEpochEnd(event); });
  }

  bool nextBatch() {
    const auto begin = Clock::now();
    const bool any = muster::nextBatch(data_, batch_);
    times_.waitingForData += Clock::now() - begin;
    return any;
  }

  struct Step {
    StepTicket ticket;
    BatchStamp stamp;
    std::int64_t examples;
  };

  Step begin() {
    const auto begin = Clock::now();
    if (!prepared_) {
      model_.prepare(batch_);
      if (model_.iteration() == 0)
        for (const auto& remark : {scaleRemark(model_, batch_), maskRemark(model_, batch_)})
          if (!remark.empty()) logWarning("fit: {}", remark);
    }
    prepared_ = true;
    const StepTicket ticket = named(batch_.stamp, [&] { return model_.step(batch_); });
    times_.computing += Clock::now() - begin;
    return {ticket, batch_.stamp, batch_.examples()};
  }

  void finish(const Step& step) {
    const auto begin = Clock::now();
    const StepScore score = named(step.stamp, [&] {
      const StepScore read = step.ticket.wait();
      requireFinite(read);
      return read;
    });
    times_.computing += Clock::now() - begin;
    ++times_.batches;
    times_.examples += step.examples;
    const std::array<std::int64_t, 1> one{1};
    EpochPosition trained = position_.after(one);
    trained.examples += step.examples;
    trained.scoreSum += score.score * score.weight;
    trained.weight += score.weight;
    trained.score = score.score;
    moveTo(std::move(trained));
    model_.setScore(score.score);
    notifyStep(step, score);
  }

  /// Sets the training's position; the state that it was resumed from is no longer valid.
  void moveTo(EpochPosition position) {
    position_ = std::move(position);
    begun_ = true;
    model_.trainingState().clear();
    model_.setLoadedFrom({});
  }

  void notifyStep(const Step& step, const StepScore& score) {
    const IterationEvent iteration{*this, 0, step.stamp, step.examples, score.score};
    const MergeEvent merge{.trainer = *this,
                           .epoch = step.stamp.epoch,
                           .iteration = step.stamp.iteration + 1,
                           .batchesInEpoch = step.stamp.sequence + 1,
                           .examples = step.examples,
                           .score = score.score};
    notify([&](Listener& l) {
      l.scope() == ListenerScope::Worker ? l.onIteration(iteration) : l.onMerge(merge);
    });
  }

  Model& model_;
  DataSetIterator& users_;
  JoiningIterator data_;  // joins batches of users_
  const Listeners listeners_;
  std::atomic<bool>& stop_;
  Batch batch_;
  bool prepared_ = false;
  bool trained_ = false;    // an epoch
  EpochPosition position_;  // after the last finished step
  bool begun_ = false;      // whether a step or an epoch has finished
  bool failed_ = false;
  WorkerTimes times_;
};

}  // namespace

void Model::fit(DataSetIterator& data, std::int64_t epochs, const std::stop_token& stop) try {
  require(epochs >= 0, "fit: epochs cannot be negative, got {}", epochs);
  const TrainingUse use(*this);
  stopRequested_ = false;
  const std::stop_callback stopWhenAsked(stop, [this] { stopRequested_ = true; });
  const TrainingReads reads(data);
  const ArithmeticScope arithmetic(context_->threads());
  strategyState().clear();
  Fit(*this, data, detail::withProgress(listeners_), stopRequested_).run(epochs);
} catch (const std::bad_alloc&) {
  throw kShortage;
}

std::int64_t Model::epochsUntil(std::int64_t epochs) const {
  require(epochs >= 0, "fitUntil: epochs cannot be negative, got {}", epochs);
  if (epoch() >= epochs)
    logInfo("fitUntil: nothing is left to train: the model has finished {} of {}", epoch(),
            plural(epochs, "epoch"));
  return std::max<std::int64_t>(0, epochs - epoch());
}

}  // namespace muster
