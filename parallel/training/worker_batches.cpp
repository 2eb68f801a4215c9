#include "muster/parallel/training/worker_batches.h"

#include <utility>

#include "muster/core/data/next_batch.h"

namespace muster {

std::optional<Batch*> WorkerBatches::dealt() {
  if (const auto batch = queue().tryPop()) return unlessUnread(batch);
  if (!giveBackTrained()) return std::nullopt;  // the reader may be waiting for these batches
  return waitForBatch();
}

std::optional<Batch*> WorkerBatches::waitForBatch() {
  const Phase waiting(activity_, Activity::Kind::WaitingForData, times_.own.waitingForData);
  return unlessUnread(queue().pop());
}

/// If the batch could not be read: the end of the epoch after a stop, which needs it no more; else fails the
/// run and returns nothing.
std::optional<Batch*> WorkerBatches::unlessUnread(std::optional<Batch*> batch) {
  if (batch != run_.queues.unread()) return batch;
  if (run_.rounds.stopAsked()) return nullptr;
  run_.failUnread();
  return std::nullopt;
}

/// At first waits for the epoch to begin.
std::optional<Batch*> WorkerBatches::readByNumber() {
  if (!own_) {
    const auto batch = waitForBatch();
    if (!batch || !*batch) return batch;
    own_ = *batch;
    ownNext_ = own_->stamp;
  }
  const NumberedBatches& batches = *run_.numbered;
  if (ownNext_.sequence >= batches.numberOfBatches())
    return run_.queues.free().push(std::exchange(own_, nullptr)) ? std::optional<Batch*>(nullptr)
                                                                 : std::nullopt;
  const Phase inIterator(activity_, Activity::Kind::InIterator, times_.own.waitingForData, ownNext_.sequence);
  reading_ = true;
  muster::nextBatch(batches, ownNext_.sequence, *own_);
  reading_ = false;
  own_->stamp = ownNext_;
  ownNext_.sequence += run_.place.workers();
  ownNext_.firstExample += run_.place.workers() * batches.examplesEach();
  ++ownNext_.iteration;
  return own_;
}

bool WorkerBatches::done(Batch* batch) {
  if (run_.numbered) return true;
  trained_.push_back(batch);
  // Workers may keep trained batches only if batches are dealt in turn; see BatchQueues::group.
  const bool inTurn = !run_.decisions.start().arrivals;
  return (inTurn && trained_.size() < run_.queues.group()) || giveBackTrained();
}

bool WorkerBatches::giveBackTrained() {
  bool open = true;
  for (Batch* const batch : trained_) open = run_.queues.free().push(batch) && open;
  trained_.clear();
  return open;
}

void WorkerBatches::giveBack() {
  giveBackTrained();
  if (run_.queues.shared()) return;  // waiting workers have emptied the shared queue
  while (const auto batch = queue().tryPop())
    if (*batch && batch != run_.queues.unread()) run_.queues.free().push(*batch);
}

}  // namespace muster
