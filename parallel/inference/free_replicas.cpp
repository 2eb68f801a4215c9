#include "muster/parallel/inference/free_replicas.h"

#include <algorithm>

namespace muster {

FreeReplicas::FreeReplicas(const InferenceOptions& options)
    : queueLimit_(static_cast<std::size_t>(options.queueLimit)), whenFull_(options.whenFull) {}

void FreeReplicas::add(std::unique_ptr<FreeReplica> replica) {
  const Lock lock(mutex_);
  free_.push_back(std::move(replica));
}

bool FreeReplicas::lend(Loan& loan) {
  const Lock lock(mutex_);
  if (closed_) throw InferenceShutDown("output: this ParallelInference was shut down");
  if (free_.empty()) {
    if (whenFull_ == WhenFull::Refuse && waiting_.size() >= queueLimit_)
      throw QueueFull(fmt::format("output: {} calls wait, which is the queue limit", waiting_.size()));
    waiting_.push_back(&loan);
    return false;
  }
  loan.replica_ = std::move(free_.back());
  free_.pop_back();
  ++lent_;
  return true;
}

bool FreeReplicas::withdraw(const Loan& loan) {
  const Lock lock(mutex_);
  const auto place = std::ranges::find(waiting_, &loan);
  if (place == waiting_.end()) return false;
  waiting_.erase(place);
  if (closed_) left_.notify_all();
  return true;
}

FreeReplicas::Loan* FreeReplicas::takeBack(std::unique_ptr<FreeReplica> replica) {
  const Lock lock(mutex_);
  if (!waiting_.empty()) {
    Loan* const next = waiting_.front();
    waiting_.pop_front();
    next->replica_ = std::move(replica);
    return next;
  }
  free_.push_back(std::move(replica));  // which had room for it
  --lent_;
  if (closed_) left_.notify_all();
  return nullptr;
}

FreeReplicas::Loan::Loan(FreeReplicas& replicas, ParallelInference::Clock::time_point deadline)
    : replicas_(replicas) {
  if (replicas_.lend(*this)) return;
  try {
    if (handedOver_.waitUntil(deadline)) return;
  } catch (...) {  // this thread is cancelled
    if (!leave()) giveBack();
    throw;
  }
  if (leave()) throw DeadlineExceeded("output: the deadline passed before a replica was free");
}

bool FreeReplicas::Loan::leave() {
  if (replicas_.withdraw(*this)) return true;
  handedOver_.wait();  // it is about to be signalled
  return false;
}

void FreeReplicas::Loan::giveBack() {
  if (Loan* const next = replicas_.takeBack(std::move(replica_))) next->handedOver_.signal();
}

std::int64_t FreeReplicas::waiting() const {
  const Lock lock(mutex_);
  return static_cast<std::int64_t>(waiting_.size());
}

void FreeReplicas::close() {
  Lock lock(mutex_);
  closed_ = true;
  while (!waiting_.empty() || lent_ > 0) left_.wait(lock.native());
}

}  // namespace muster
