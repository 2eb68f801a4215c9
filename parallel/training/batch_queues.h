#pragma once

#include <memory>
#include <span>
#include <vector>

#include "muster/core/base/queue.h"
#include "muster/core/data/batch.h"

namespace muster {

/// The batches of one `fit()` circulate between a queue of free ones and a queue for each worker. A null
/// batch ends an epoch. Thread-safe.
class BatchQueues {
 public:
  BatchQueues(int workers, std::span<const std::unique_ptr<Batch>> batches) : free_(batches.size()) {
    for (const auto& batch : batches) free_.push(batch.get());
    // One place more than there are batches: the null that ends an epoch never waits for room.
    for (int w = 0; w < workers; ++w)
      filled_.push_back(std::make_unique<BoundedQueue<Batch*>>(batches.size() + 1));
  }

  BoundedQueue<Batch*>& of(int worker) { return *filled_[static_cast<std::size_t>(worker)]; }
  BoundedQueue<Batch*>& free() { return free_; }
  /// Wakes every thread that waits for a batch or for room.
  void close() {
    for (auto& queue : filled_) queue->close();
    free_.close();
  }

 private:
  BoundedQueue<Batch*> free_;
  std::vector<std::unique_ptr<BoundedQueue<Batch*>>> filled_;  // [worker]
};

}  // namespace muster
