#include "muster/parallel/evaluation/evaluation_run.h"

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/parallel/training/watched_iterator.h"

namespace muster {
namespace {

/// Gives a replica another state for as long as it lives, and then its own again, every bit.
class StateLoan {
 public:
  explicit StateLoan(Model& replica) : replica_(replica) {
    replica.context().synchronize();
    for (const auto* block : replica.state())
      own_.push_back(block->kind == BlockKind::Gradients ? Tensor() : cloneTensor(block->values));
  }
  ~StateLoan() {
    try {
      give(own_);
    } catch (...) {
      logWarning("evaluate: a replica could not take back its state: {}", describe(std::current_exception()));
    }
  }
  StateLoan(const StateLoan&) = delete;
  StateLoan& operator=(const StateLoan&) = delete;

  /// @param values  alike in order and sizes.
  void give(std::span<const Tensor> values) {
    const auto blocks = replica_.state();
    for (std::size_t b = 0; b < blocks.size(); ++b)
      if (blocks[b]->kind != BlockKind::Gradients)  // nobody reads them before they are written
        copy(values[b], blocks[b]->values, replica_.context());
    replica_.context().synchronize();
  }

 private:
  Model& replica_;
  std::vector<Tensor> own_;
};

}  // namespace

EvaluationRun::EvaluationRun(Model& model, std::vector<Device> devices, std::int64_t batchesAhead)
    : devices_(std::move(devices)),
      batches_(devices_.size() + static_cast<std::size_t>(batchesAhead)),
      counts_(devices_.size()),
      free_(batches_.size()),
      working_(devices_.size()) {
  for (const auto* block : model.state()) state_.push_back(block->values);
  model.context().synchronize();
  for (auto& batch : batches_) free_.push(&batch);
  for (std::size_t w = 0; w < devices_.size(); ++w)
    queues_.push_back(std::make_unique<BoundedQueue<Batch*>>(batches_.size()));
}

template <typename Where>
void EvaluationRun::fail(std::int64_t sequence, int worker, std::exception_ptr cause, Where where) noexcept {
  auto failure = cause;
  try {
    const auto text = fmt::format("evaluate: {}: {}", where(), describe(cause));
    failure = std::make_exception_ptr(TrainingError(text, worker, cause));
  } catch (...) {  // no memory for words: the cause must do
  }
  std::scoped_lock lock(mutex_);
  if (sequence >= failedAt_) return;
  failure_ = std::move(failure);
  failedAt_ = sequence;
}

void EvaluationRun::failInBatch(std::int64_t sequence, int worker) noexcept {
  fail(sequence, worker, std::current_exception(), [&] {
    return fmt::format("worker {} on {} failed in batch {}", worker, devices_[worker].toString(),
                       sequence + 1);
  });
}

void EvaluationRun::deal(DataSetIterator& iterator, Activity& activity) {
  WatchedIterator data(iterator, activity);
  BatchStamp stamp;
  try {
    data.reset(0);
    while (failedAt_ == kNever) {
      activity.set(Activity::Kind::WaitingForRoom);
      Batch& batch = **free_.pop();
      if (!data.next(batch)) break;
      batch.stamp = stamp;
      stamp.firstExample += batch.examples();
      queues_[static_cast<std::size_t>(stamp.sequence) % queues_.size()]->push(&batch);
      ++stamp.sequence;
    }
  } catch (...) {
    fail(stamp.sequence, -1, std::current_exception(), [&] { return data.failure(); });
  }
  closeQueues();
  activity.set(Activity::Kind::WaitingForWorkers);
}

void EvaluationRun::work(int worker, Model& replica, Activity& activity) noexcept {
  try {
    StateLoan loan(replica);
    loan.give(state_);
    countBatches(worker, replica, activity);
  } catch (...) {
    fail(kBeforeAnyBatch, worker, std::current_exception(), [&] {
      return fmt::format("worker {} on {} could not take the model's state", worker,
                         devices_[worker].toString());
    });
    countBatches(worker, replica, activity);  // none any more, but they are given back
  }
  std::scoped_lock lock(mutex_);
  --working_;
  ended_.notify_all();  // with the lock: who waits may destroy this as soon as he has it
}

void EvaluationRun::countBatches(int worker, Model& replica, Activity& activity) {
  for (;;) {
    activity.set(Activity::Kind::WaitingForData);
    const auto next = queues_[worker]->pop();
    if (!next) return;
    Batch& batch = **next;
    const std::int64_t sequence = batch.stamp.sequence;
    // Batches before one that failed go on: one of them may fail as well, and would be the one to name.
    if (sequence < failedAt_) try {
        activity.set(Activity::Kind::Computing, sequence);
        evaluateBatch(replica, batch, counts_[worker]);
      } catch (...) {
        failInBatch(sequence, worker);
      }
    free_.push(&batch);
  }
}

void EvaluationRun::closeQueues() {
  for (auto& queue : queues_) queue->close();
}

void EvaluationRun::awaitWorkers() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return working_ == 0; });
}

Evaluation EvaluationRun::result() {
  std::optional<Evaluation> all;
  for (int w = 0; w < static_cast<int>(counts_.size()); ++w) try {
      if (!counts_[w]) continue;
      if (all)
        all->merge(*counts_[w]);
      else
        all = counts_[w];
    } catch (...) {  // predictions of other classes, from its first batch on
      failInBatch(w, w);
    }
  if (failure_) std::rethrow_exception(failure_);
  require(all.has_value(), "evaluate: the data set has no batches");
  return *std::move(all);
}

}  // namespace muster
