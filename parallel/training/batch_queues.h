#pragma once

#include <memory>
#include <span>
#include <vector>

#include "muster/core/base/queue.h"
#include "muster/core/data/batch.h"

namespace muster {

/// The batches of one `fit()` circulate between a queue of free ones and a queue for each worker, or one for
/// all. In each a null batch for each of its workers ends an epoch. Thread-safe.
class BatchQueues {
 public:
  /// @param shared  one queue for all workers: a batch goes to the one that asks.
  BatchQueues(int workers, std::span<const std::unique_ptr<Batch>> batches, bool shared = false)
      : shared_(shared), free_(batches.size()) {
    for (const auto& batch : batches) free_.push(batch.get());
    // Places for the nulls that end an epoch: they never wait for room.
    const auto nulls = static_cast<std::size_t>(shared ? workers : 1);
    for (int w = 0; w < (shared ? 1 : workers); ++w)
      filled_.push_back(std::make_unique<BoundedQueue<Batch*>>(batches.size() + nulls));
  }

  bool shared() const { return shared_; }
  BoundedQueue<Batch*>& of(int worker) { return *filled_[shared_ ? 0 : static_cast<std::size_t>(worker)]; }
  BoundedQueue<Batch*>& free() { return free_; }
  /// Wakes every thread that waits for a batch or for room.
  void close() {
    for (auto& queue : filled_) queue->close();
    free_.close();
  }

 private:
  const bool shared_;
  BoundedQueue<Batch*> free_;
  std::vector<std::unique_ptr<BoundedQueue<Batch*>>> filled_;  // [worker]
};

}  // namespace muster
