#include "muster/parallel/training/dispatcher.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/parallel/runtime/watched_iterator.h"

namespace muster {
namespace {

const EpochPosition kEpochStart;

/// Deals the batches of one epoch. @return false when the run has been aborted.
/// @param order  deals the batches; some were dealt before the training was resumed. Nothing: in turn.
bool dealBatches(FitRun& run, WatchedIterator& data, std::optional<ArrivalOrder>& order, Batch* first,
                 const EpochPosition& begun, BatchStamp& stamp, Activity& activity) {
  const std::int64_t firstIteration = stamp.iteration;
  const int workers = run.place.workers();
  std::int64_t dealt = order ? order->batches() : 0;
  stamp.iteration = firstIteration + dealt / workers;
  const auto next = [&](Batch& batch) {
    if (!first) return data.next(batch);
    std::swap(batch, *std::exchange(first, nullptr));
    return true;
  };
  while (!run.stopping()) {
    const bool trained = begun.isTrained(stamp.sequence);
    if (const int worker = static_cast<int>(dealt % workers); !run.place.isHere(worker) && !trained) {
      const std::int64_t skipped =
          first ? std::exchange(first, nullptr)->examples() : data.skipOne(run.place.node);
      if (skipped == 0) break;
      stamp.firstExample += skipped;
      ++stamp.sequence;
      stamp.iteration = firstIteration + ++dealt / workers;
      continue;
    }
    activity.set(Activity::Kind::WaitingForRoom);
    const auto batch = run.queues.free().pop();
    if (!batch) return false;
    // After a stop during the iterator's call, its batch is not trained.
    if (run.stopping() || !next(**batch) || run.stopping()) {
      run.queues.free().push(*batch);
      break;
    }
    (*batch)->stamp = stamp;
    stamp.firstExample += (*batch)->examples();
    activity.set(Activity::Kind::WaitingForRoom);
    ++stamp.sequence;
    if (trained) {
      if (!run.queues.free().push(*batch)) return false;
      continue;
    }
    const int worker = order ? order->deal() : static_cast<int>(dealt % workers);
    if (!run.queues.of(run.place.localOf(worker)).push(*batch)) return false;
    stamp.iteration = firstIteration + ++dealt / workers;
  }
  stamp.iteration = firstIteration + (dealt + workers - 1) / workers;
  return true;
}

/// Such an epoch would have the score 0, the best of all.
void requireBatches(std::int64_t batches, std::int64_t epoch) {
  require(batches > 0, "the iterator gave no batches in epoch {}; does its reset() begin again?", epoch + 1);
}

bool endEpoch(FitRun& run) {
  for (int w = 0; w < run.place.local; ++w)
    if (!run.queues.of(w).push(nullptr)) return false;
  return true;
}

/// Takes all free batches, so that later the free queue holds only those that workers have returned.
/// @return one for each worker, which it fills itself.
std::vector<Batch*> takeOwn(FitRun& run) {
  std::vector<Batch*> own;
  while (const auto batch = run.queues.free().tryPop()) own.push_back(*batch);
  own.resize(static_cast<std::size_t>(run.place.local));
  return own;
}

/// Lets each worker read its batches of one epoch, and waits until all have. @return false when the run has
/// been aborted.
bool letWorkersRead(FitRun& run, const std::vector<Batch*>& own, BatchStamp& stamp, Activity& activity) {
  activity.set(Activity::Kind::WaitingForWorkers);
  const std::int64_t batches = std::max<std::int64_t>(0, run.numbered->numberOfBatches() - stamp.sequence),
                     workers = run.place.workers();
  for (int w = 0; w < run.place.local; ++w) {
    Batch* const batch = own[static_cast<std::size_t>(w)];
    batch->stamp = stamp;
    batch->stamp.sequence += run.place.worker(w);
    batch->stamp.firstExample += run.place.worker(w) * run.numbered->examplesEach();
    if (!run.queues.of(w).push(batch)) return false;
  }
  for (int w = 0; w < run.place.local; ++w)
    if (!run.queues.free().pop()) return false;
  stamp.iteration += (batches + workers - 1) / workers;
  return true;
}

}  // namespace

void dispatch(FitRun& run, DataSetIterator& iterator, std::int64_t epochs, Batch* first, Activity& activity) {
  const Ledger& start = run.decisions.start();
  BatchStamp stamp{.epoch = start.epoch, .iteration = start.epochIteration};
  WatchedIterator data(iterator, activity);
  try {
    std::optional<ArrivalOrder> order;
    if (start.arrivals && !start.arrivals->onWallClock()) order.emplace(start.arrivals->newOrder());
    const std::vector<Batch*> own = run.numbered ? takeOwn(run) : std::vector<Batch*>();
    for (std::int64_t e = 0; e < epochs && !run.stopping(); ++e, ++stamp.epoch) {
      const EpochPosition& begun = e == 0 ? start.begun : kEpochStart;
      Batch* const read = std::exchange(first, nullptr);
      stamp.sequence = begun.nextBatch;
      stamp.firstExample = read ? read->stamp.firstExample : data.reset(stamp.epoch, begun);
      if (read) data.resumeAfter(stamp.epoch, begun.nextBatch + 1);
      if (run.numbered) {
        if (!run.stopping()) requireBatches(run.numbered->numberOfBatches(), stamp.epoch);
        if (!letWorkersRead(run, own, stamp, activity)) break;
        continue;
      }
      if (order) order->restart(stamp.iteration, stamp.epoch);
      for (std::int64_t l = 0; order && e == 0 && l < start.landingsBefore; ++l) order->land();
      if (!dealBatches(run, data, order, read, begun, stamp, activity)) break;
      if (!run.stopping()) requireBatches(stamp.sequence, stamp.epoch);
      activity.set(Activity::Kind::WaitingForRoom);
      if (!endEpoch(run)) break;
    }
    // A worker may have begun to wait for the next epoch just before the stop.
    if (run.stopping()) endEpoch(run);
  } catch (...) {
    run.fail(-1, std::current_exception(), [&] { return data.failure(); });
  }
  activity.set(Activity::Kind::Idle);
}

}  // namespace muster
