#include "muster/parallel/evaluation/evaluation_run.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/data/output_names.h"
#include "muster/core/device/memory_room.h"
#include "muster/parallel/evaluation/node_counts.h"
#include "muster/parallel/evaluation/state_loan.h"
#include "muster/parallel/runtime/watched_iterator.h"
#include "muster/parallel/training/memory_need.h"

namespace muster {

EvaluationRun::EvaluationRun(Model& model, std::optional<Task> task, std::span<ReplicaThread* const> threads,
                             std::int64_t batchesAhead, NodeLink* link, Exchange* exchange, std::string root)
    : description_(&model.inputDescription()),
      task_(task),
      link_(link),
      exchange_(exchange),
      root_(std::move(root)),
      threads_(threads),
      batches_(threads.size() + static_cast<std::size_t>(batchesAhead)),
      counts_(threads.size()),
      free_(batches_.size()) {
  for (const auto* block : model.state()) state_.push_back(block->values);
  model.context().synchronize();
  for (auto& batch : batches_) free_.push(&batch);
  for (std::size_t r = 0; r < threads.size(); ++r)
    queues_.push_back(std::make_unique<BoundedQueue<Batch*>>(batches_.size()));
}

AnyEvaluation EvaluationRun::evaluate(DataSetIterator& data, Activity& caller, Batch* first) {
  Tasks tasks;
  for (std::size_t r = 0; r < threads_.size(); ++r)
    threads_[r]->addTo(tasks, Activity::Kind::Replicating, [this, r] { work(static_cast<int>(r)); });
  tasks.start();
  deal(data, caller, first);
  tasks.wait();
  return result();
}

template <typename Where>
void EvaluationRun::fail(std::int64_t sequence, int replica, std::exception_ptr cause, Where where) noexcept {
  auto failure = cause;
  try {
    const auto text = fmt::format("evaluate: {}: {}", where(), describe(cause));
    failure = std::make_exception_ptr(TrainingError(text, replica, cause));
  } catch (...) {  // no memory for the text: report the cause alone
  }
  const Lock lock(mutex_);
  if (sequence >= failedAt_) return;
  failure_ = std::move(failure);
  failedAt_ = sequence;
}

void EvaluationRun::failInBatch(std::int64_t sequence, int replica) noexcept {
  fail(sequence, replica, std::current_exception(),
       [&] { return fmt::format("{} failed in batch {}", threads_[replica]->name(), sequence + 1); });
}

void EvaluationRun::requireRoomForBatches(const Batch& first, std::int64_t batches) noexcept {
  try {
    const auto more = std::min(batches, static_cast<std::int64_t>(batches_.size())) - 1;
    requireMemoryRoom(static_cast<double>(bytesOf(first)) * static_cast<double>(more),
                      "the batches of an evaluation take", "smaller batches and fewer workers need less",
                      root_);
  } catch (...) {
    fail(first.stamp.sequence, -1, std::current_exception(), [] { return "out of memory"; });
  }
}

void EvaluationRun::deal(DataSetIterator& iterator, Activity& caller, Batch* first) {
  description_ = &knownDescription(*description_, iterator);
  WatchedIterator data(iterator, caller, first);
  BatchStamp stamp;
  const std::int64_t nodes = link_ ? link_->nodes() : 1, node = link_ ? link_->node() : 0;
  try {
    data.reset(0);
    while (failedAt_ == kNever) {
      if (stamp.sequence % nodes != node) {
        const std::int64_t skipped = data.skipOne(static_cast<int>(node));
        if (skipped == 0) break;
        stamp.firstExample += skipped;
        ++stamp.sequence;
        continue;
      }
      caller.set(Activity::Kind::WaitingForRoom);
      Batch& batch = **free_.pop();
      if (!data.next(batch)) break;
      batch.stamp = stamp;
      if (stamp.sequence == node) {
        const auto all = iterator.batchesPerEpoch();
        requireRoomForBatches(batch, all ? (*all + nodes - 1 - node) / nodes : kNever);
      }
      stamp.firstExample += batch.examples();
      queues_[static_cast<std::size_t>(stamp.sequence / nodes) % queues_.size()]->push(&batch);
      ++stamp.sequence;
    }
  } catch (...) {
    fail(stamp.sequence, -1, std::current_exception(), [&] { return data.failure(); });
  }
  for (auto& queue : queues_) queue->close();  // so that the threads end their work
  caller.set(Activity::Kind::WaitingForWorkers);
}

void EvaluationRun::work(int replica) noexcept {
  try {
    const StateLoan loan(threads_[replica]->replica(), state_, root_);
    countBatches(replica);
  } catch (...) {
    fail(kBeforeAnyBatch, replica, std::current_exception(),
         [&] { return fmt::format("{} could not take the model's state", threads_[replica]->name()); });
    countBatches(replica);  // counts nothing now, but gives the batches back
  }
}

void EvaluationRun::countBatches(int replica) {
  auto& thread = *threads_[replica];
  for (;;) {
    thread.activity().set(Activity::Kind::WaitingForData);
    const auto next = queues_[replica]->pop();
    if (!next) return;
    Batch& batch = **next;
    const std::int64_t sequence = batch.stamp.sequence;
    // Batches before a failed one are still evaluated: if another fails, too, the earlier failure is
    // reported.
    if (sequence < failedAt_) try {
        thread.activity().set(Activity::Kind::Computing, sequence);
        evaluateBatch(thread.replica(), batch, counts_[replica], task_);
      } catch (...) {
        failInBatch(sequence, replica);
      }
    free_.push(&batch);
  }
}

AnyEvaluation EvaluationRun::result() {
  std::optional<AnyEvaluation> all;
  for (int r = 0; r < static_cast<int>(counts_.size()); ++r) try {
      if (!counts_[r]) continue;
      if (all)
        all->merge(*counts_[r]);
      else
        all = counts_[r];
    } catch (...) {  // this replica has predicted other classes since its first batch
      failInBatch(link_ ? std::int64_t{r} * link_->nodes() + link_->node() : r, r);
    }
  const Lock lock(mutex_);
  if (link_) all = addUpNodes(*exchange_, *link_, failedAt_, all);
  if (failure_) std::rethrow_exception(failure_);
  require(all.has_value(), "evaluate: the data set has no batches");
  all->describe(*description_);
  return *std::move(all);
}

}  // namespace muster
