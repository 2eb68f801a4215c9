// How a worker gets its batches, and gives them back.
#include <utility>

#include "muster/core/data/next_batch.h"
#include "muster/parallel/training/worker.h"

namespace muster {

using Clock = std::chrono::steady_clock;

std::optional<Batch*> Worker::nextBatch(FitRun& run) {
  if (run.numbered) return readNext(run);
  if (const auto batch = run.queues.of(local_).tryPop()) return batch;
  if (!trained_.giveBack()) return std::nullopt;  // the reader may be waiting for these batches
  const auto begin = Clock::now();  // before the activity is set: once it is visible, the wait is timed
  thread_.activity().set(Activity::Kind::WaitingForData);
  const auto batch = run.queues.of(local_).pop();
  times_.own.waitingForData += Clock::now() - begin;
  return batch;
}

std::optional<Batch*> Worker::readNext(FitRun& run) {
  const auto begin = Clock::now();
  if (!own_) {  // the epoch has not begun
    thread_.activity().set(Activity::Kind::WaitingForData);
    const auto batch = run.queues.of(local_).pop();
    if (!batch || !*batch) return batch;
    own_ = *batch;
    ownNext_ = own_->stamp;
  }
  const NumberedBatches& batches = *run.numbered;
  if (ownNext_.sequence >= batches.numberOfBatches())
    return run.queues.free().push(std::exchange(own_, nullptr)) ? std::optional<Batch*>(nullptr)
                                                                : std::nullopt;
  thread_.activity().set(Activity::Kind::InIterator, ownNext_.sequence);
  reading_ = true;
  muster::nextBatch(batches, ownNext_.sequence, *own_);
  reading_ = false;
  own_->stamp = ownNext_;
  ownNext_.sequence += run.place.workers();
  ownNext_.firstExample += run.place.workers() * batches.examplesEach();
  ++ownNext_.iteration;
  times_.own.waitingForData += Clock::now() - begin;
  return own_;
}

void Worker::giveBackBatches(FitRun& run) {
  trained_.giveBack();
  if (run.queues.shared()) return;  // waiting workers have emptied the shared queue
  while (const auto batch = run.queues.of(local_).tryPop())
    if (*batch) run.queues.free().push(*batch);
}

}  // namespace muster
