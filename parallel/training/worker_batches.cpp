#include "muster/parallel/training/worker_batches.h"

#include <utility>

#include "muster/core/data/next_batch.h"
#include "muster/parallel/runtime/phase.h"

namespace muster {

void WorkerBatches::begin(FitRun& run, int local, Activity& activity, TimeSheet& times) {
  run_ = &run;
  local_ = local;
  activity_ = &activity;
  times_ = &times;
  own_ = nullptr;
  reading_ = false;
  // Workers may keep trained batches only if batches are dealt in turn; see BatchQueues::group.
  trained_.begin(run.queues.free(), run.decisions.start().arrivals ? 1 : run.queues.group());
}

std::optional<Batch*> WorkerBatches::dealt() {
  if (const auto batch = run_->queues.of(local_).tryPop()) return batch;
  if (!trained_.giveBack()) return std::nullopt;  // the reader may be waiting for these batches
  return waitForBatch();
}

std::optional<Batch*> WorkerBatches::waitForBatch() {
  const Phase waiting(*activity_, Activity::Kind::WaitingForData, times_->own.waitingForData);
  return run_->queues.of(local_).pop();
}

/// At first waits for the epoch to begin.
std::optional<Batch*> WorkerBatches::readByNumber() {
  if (!own_) {
    const auto batch = waitForBatch();
    if (!batch || !*batch) return batch;
    own_ = *batch;
    ownNext_ = own_->stamp;
  }
  const NumberedBatches& batches = *run_->numbered;
  if (ownNext_.sequence >= batches.numberOfBatches())
    return run_->queues.free().push(std::exchange(own_, nullptr)) ? std::optional<Batch*>(nullptr)
                                                                  : std::nullopt;
  const Phase inIterator(*activity_, Activity::Kind::InIterator, times_->own.waitingForData,
                         ownNext_.sequence);
  reading_ = true;
  muster::nextBatch(batches, ownNext_.sequence, *own_);
  reading_ = false;
  own_->stamp = ownNext_;
  ownNext_.sequence += run_->place.workers();
  ownNext_.firstExample += run_->place.workers() * batches.examplesEach();
  ++ownNext_.iteration;
  return own_;
}

void WorkerBatches::giveBack() {
  trained_.giveBack();
  if (run_->queues.shared()) return;  // waiting workers have emptied the shared queue
  while (const auto batch = run_->queues.of(local_).tryPop())
    if (*batch) run_->queues.free().push(*batch);
}

}  // namespace muster
