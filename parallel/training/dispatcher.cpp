#include "muster/parallel/training/dispatcher.h"

#include <algorithm>
#include <optional>

#include "muster/core/base/error.h"
#include "muster/parallel/runtime/watched_iterator.h"

namespace muster {
namespace {

class Dispatcher {
 public:
  Dispatcher(FitRun& run, WatchedIterator& data, Activity& activity)
      : run_(run),
        start_(run.decisions.start()),
        data_(data),
        activity_(activity),
        stamp_{.epoch = start_.epoch, .iteration = start_.epochIteration} {
    if (start_.arrivals && !start_.arrivals->onWallClock()) order_ = start_.arrivals->order();
    // So that later the free queue holds only batches that workers have returned.
    while (const auto batch = run_.numbered ? run_.queues.free().tryPop() : std::nullopt)
      own_.push_back(*batch);
  }

  void dispatch(std::int64_t epochs) {
    const EpochPosition epochStart;
    for (std::int64_t e = 0; e < epochs && !run_.stopping(); ++e, ++stamp_.epoch) {
      const EpochPosition& begun = e == 0 ? start_.begun : epochStart;
      stamp_.sequence = begun.nextBatch;
      stamp_.firstExample = data_.reset(stamp_.epoch, begun);
      if (order_) order_->restart(stamp_.iteration, stamp_.epoch);
      for (std::int64_t l = 0; order_ && e == 0 && l < start_.landingsBefore; ++l) order_->land();
      if (!(run_.numbered ? letWorkersRead() : deal(begun) && endEpoch())) break;
    }
    // A worker may have begun to wait for the next epoch just before the stop.
    if (run_.stopping()) endEpoch();
  }

 private:
  bool deal(const EpochPosition& begun);
  bool letWorkersRead();

  /// Such an epoch would have the score 0, the best of all.
  void requireBatches(std::int64_t batches) const {
    require(run_.stopping() || batches > 0,
            "the iterator gave no batches in epoch {}; does its reset() begin again?", stamp_.epoch + 1);
  }

  bool endEpoch() {
    activity_.set(Activity::Kind::WaitingForRoom);
    for (int w = 0; w < run_.place.local; ++w)
      if (!run_.queues.of(w).push(nullptr)) return false;
    return true;
  }

  FitRun& run_;
  const Ledger& start_;
  WatchedIterator& data_;
  Activity& activity_;
  BatchStamp stamp_;                   // of the next batch
  std::optional<ArrivalOrder> order_;  // deals the batches; nothing: in turn
  std::vector<Batch*> own_;            // [local worker, and more] which workers fill themselves
};

/// Deals the batches of one epoch. @return false when the run has been aborted.
bool Dispatcher::deal(const EpochPosition& begun) {
  const std::int64_t firstIteration = stamp_.iteration, workers = run_.place.workers();
  std::int64_t dealt = order_ ? order_->batches() : 0;  // also before the training was resumed
  for (; !run_.stopping(); ++stamp_.sequence) {
    stamp_.iteration = firstIteration + dealt / workers;
    const bool trained = begun.isTrained(stamp_.sequence);
    const int inTurn = static_cast<int>(dealt % workers);
    if (!trained && !run_.place.isHere(inTurn)) {
      const std::int64_t skipped = data_.skipOne(run_.place.node);
      if (skipped == 0) break;
      stamp_.firstExample += skipped;
      ++dealt;
      continue;
    }
    activity_.set(Activity::Kind::WaitingForRoom);
    const auto batch = run_.queues.free().pop();
    if (!batch) return false;
    // After a stop during the iterator's call, its batch is not trained.
    if (run_.stopping() || !data_.next(**batch) || run_.stopping()) {
      run_.queues.free().push(*batch);
      break;
    }
    (*batch)->stamp = stamp_;
    stamp_.firstExample += (*batch)->examples();
    activity_.set(Activity::Kind::WaitingForRoom);
    dealt += trained ? 0 : 1;
    auto& queue =
        trained ? run_.queues.free() : run_.queues.of(run_.place.localOf(order_ ? order_->deal() : inTurn));
    if (!queue.push(*batch)) return false;
  }
  stamp_.iteration = firstIteration + (dealt + workers - 1) / workers;
  requireBatches(stamp_.sequence);
  return true;
}

/// Lets each worker read its batches of one epoch, and waits until all have. @return as `deal`.
bool Dispatcher::letWorkersRead() {
  const std::int64_t batches = run_.numbered->numberOfBatches(), workers = run_.place.workers();
  requireBatches(batches);
  activity_.set(Activity::Kind::WaitingForWorkers);
  for (int w = 0; w < run_.place.local; ++w) {
    Batch* const batch = own_[static_cast<std::size_t>(w)];
    batch->stamp = stamp_;
    batch->stamp.sequence += run_.place.worker(w);
    batch->stamp.firstExample += run_.place.worker(w) * run_.numbered->examplesEach();
    if (!run_.queues.of(w).push(batch)) return false;
  }
  for (int w = 0; w < run_.place.local; ++w)
    if (!run_.queues.free().pop()) return false;
  stamp_.iteration += (std::max<std::int64_t>(0, batches - stamp_.sequence) + workers - 1) / workers;
  return true;
}

}  // namespace

void dispatch(FitRun& run, DataSetIterator& iterator, std::int64_t epochs, Batch* first, Activity& activity) {
  WatchedIterator data(iterator, activity, first);
  try {
    Dispatcher(run, data, activity).dispatch(epochs);
  } catch (...) {
    run.failReading(std::current_exception(), [&] { return data.failure(); });
  }
  activity.set(Activity::Kind::Idle);
}

}  // namespace muster
