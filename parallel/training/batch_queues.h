#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "muster/core/base/queue.h"
#include "muster/core/data/batch.h"

namespace muster {

/// The batches of one `fit()` circulate between a queue of free batches and a queue for each worker, or one
/// for all workers. A null batch for each worker of a queue ends an epoch. Thread-safe.
class BatchQueues {
 public:
  /// @param shared  one queue for all workers: a batch goes to the first worker that asks.
  BatchQueues(int workers, std::span<const std::unique_ptr<Batch>> batches, bool shared = false)
      : shared_(shared),
        group_(std::max<std::size_t>(1, batches.size() / (2 * static_cast<std::size_t>(workers)))),
        free_(batches.size(), kLooks) {
    for (const auto& batch : batches) free_.push(batch.get());
    // Room for the nulls that end an epoch, so that their push never waits.
    const auto nulls = static_cast<std::size_t>(shared ? workers : 1);
    for (int w = 0; w < (shared ? 1 : workers); ++w)
      filled_.push_back(std::make_unique<BoundedQueue<Batch*>>(batches.size() + nulls));
  }

  bool shared() const { return shared_; }
  /// How many trained batches a worker may keep and return together, so that a reader that is ahead is
  /// seldom woken. At least half of the batches stay with the reader and in the queues. Dealt in turn, these
  /// reach every worker that waits for data while the others wait at a merge.
  std::size_t group() const { return group_; }
  BoundedQueue<Batch*>& of(int worker) { return *filled_[shared_ ? 0 : static_cast<std::size_t>(worker)]; }
  BoundedQueue<Batch*>& free() { return free_; }
  /// Wakes every thread that waits for a batch or for room.
  void close() {
    for (auto& queue : filled_) queue->close();
    free_.close();
  }

 private:
  static constexpr int kLooks = 100;  // polls before the reader sleeps: a worker may need its core

  const bool shared_;
  const std::size_t group_;
  BoundedQueue<Batch*> free_;
  std::vector<std::unique_ptr<BoundedQueue<Batch*>>> filled_;  // [worker]
};

/// The batches that a worker has trained and not returned to the reader yet. Used by one thread.
class TrainedBatches {
 public:
  /// @param group  how many batches are given back together.
  void begin(BoundedQueue<Batch*>& free, std::size_t group) {
    free_ = &free;
    group_ = group;
    batches_.clear();
    batches_.reserve(group);
  }

  /// @return false if the queue is closed.
  bool add(Batch* batch) {
    batches_.push_back(batch);
    return batches_.size() < group_ || giveBack();
  }

  /// Gives back the batches kept so far. @return false if the queue is closed.
  bool giveBack() {
    bool open = true;
    for (Batch* const batch : batches_) open = free_->push(batch) && open;
    batches_.clear();
    return open;
  }

 private:
  BoundedQueue<Batch*>* free_ = nullptr;
  std::size_t group_ = 1;
  std::vector<Batch*> batches_;
};

}  // namespace muster
