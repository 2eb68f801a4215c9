#include "muster/parallel/inference/free_replicas.h"

#include <algorithm>

namespace muster {

FreeReplicas::FreeReplicas(const InferenceOptions& options)
    : queueLimit_(static_cast<std::size_t>(options.queueLimit)), whenFull_(options.whenFull) {}

void FreeReplicas::add(std::unique_ptr<FreeReplica> replica) {
  const std::scoped_lock lock(mutex_);
  free_.push_back(std::move(replica));
}

FreeReplicas::Loan::Loan(FreeReplicas& replicas, ParallelInference::Clock::time_point deadline)
    : replicas_(replicas) {
  auto& free = replicas_.free_;
  const auto& waiting = replicas_.waiting_;
  std::unique_lock lock(replicas_.mutex_);
  if (replicas_.closed_) throw InferenceShutDown("output: this ParallelInference was shut down");
  if (free.empty()) {
    if (replicas_.whenFull_ == WhenFull::Refuse && waiting.size() >= replicas_.queueLimit_)
      throw QueueFull(fmt::format("output: {} calls wait, which is the queue limit", waiting.size()));
    wait(lock, deadline);
  } else {
    replica_ = std::move(free.back());
    free.pop_back();
    ++replicas_.lent_;
  }
}

void FreeReplicas::Loan::wait(std::unique_lock<std::mutex>& lock,
                              ParallelInference::Clock::time_point deadline) {
  replicas_.waiting_.push_back(this);
  lock.unlock();
  try {
    if (handedOver_.waitUntil(deadline)) return;
  } catch (...) {  // this thread is cancelled
    if (!leave()) giveBack();
    throw;
  }
  if (leave()) throw DeadlineExceeded("output: the deadline passed before a replica was free");
}

bool FreeReplicas::Loan::leave() {
  std::unique_lock lock(replicas_.mutex_);
  if (const auto place = std::ranges::find(replicas_.waiting_, this); place != replicas_.waiting_.end()) {
    replicas_.waiting_.erase(place);
    if (replicas_.closed_) replicas_.left_.notify_all();
    return true;
  }
  lock.unlock();
  handedOver_.wait();  // it is about to be signalled
  return false;
}

void FreeReplicas::Loan::giveBack() {
  std::unique_lock lock(replicas_.mutex_);
  if (!replicas_.waiting_.empty()) {
    Loan& next = *replicas_.waiting_.front();
    replicas_.waiting_.pop_front();
    next.replica_ = std::move(replica_);
    lock.unlock();
    next.handedOver_.signal();
    return;
  }
  replicas_.free_.push_back(std::move(replica_));  // which had room for it
  --replicas_.lent_;
  if (replicas_.closed_) replicas_.left_.notify_all();
}

std::int64_t FreeReplicas::waiting() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<std::int64_t>(waiting_.size());
}

void FreeReplicas::close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  left_.wait(lock, [this] { return waiting_.empty() && lent_ == 0; });
}

}  // namespace muster
