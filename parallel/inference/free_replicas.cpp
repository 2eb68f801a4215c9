#include "muster/parallel/inference/free_replicas.h"

#include <algorithm>

#include "muster/core/base/plural.h"
#include "muster/parallel/inference/call_queue.h"

namespace muster {

void FreeReplicas::add(std::unique_ptr<FreeReplica> replica) {
  const Lock lock(mutex_);
  free_.push_back(std::move(replica));
  ++all_;
}

FreeReplicas::Loan::Loan(FreeReplicas& replicas, ParallelInference::Clock::time_point deadline)
    : replicas_(replicas) {
  replicas_.lend(*this, deadline);
}

void FreeReplicas::lend(Loan& loan, TimePoint deadline) {
  Lock lock(mutex_);
  if (closed_) throw InferenceShutDown("output: this ParallelInference was shut down");
  if (lendFree(loan)) return;
  if (whenFull_ == WhenFull::Refuse && waiting_.size() >= queueLimit_)
    throw QueueFull(fmt::format("output: {}, which is the queue limit",
                                plural(waiting_.size(), "call waits", "calls wait")));
  waiting_.push_back(&loan);
  try {
    waitForReplica(lock, loan, deadline);
  } catch (...) {  // this thread is cancelled
    if (loan.replica_)
      returnReplica(std::move(loan.replica_));
    else
      remove(loan);
    throw;
  }
  if (loan.replica_) return;
  remove(loan);
  throw DeadlineExceeded("output: the deadline passed before a replica was free");
}

bool FreeReplicas::lendFree(Loan& loan) {
  if (free_.empty()) return false;
  loan.replica_ = std::move(free_.back());
  free_.pop_back();
  return true;
}

void FreeReplicas::waitForReplica(Lock& lock, Loan& loan, TimePoint deadline) {
  while (!loan.replica_) {
    if (looking_ == &loan && lendFree(loan)) {
      remove(loan);
      return;
    }
    const auto now = ParallelInference::Clock::now();
    if (now >= deadline) return;
    auto until = deadline;
    if (looking_ == &loan) {
      if (turnEnds_ == TimePoint::max()) turnEnds_ = now + kTurn;
      // From turnEnds_ on, a returned replica is handed over. Look then: one returned earlier may be free.
      if (now < turnEnds_) until = std::min(until, turnEnds_);
    }
    waitUntil(loan.ready_, lock, until);
  }
}

void FreeReplicas::remove(const Loan& loan) {
  std::erase(waiting_, &loan);
  if (looking_ == &loan) {
    looking_ = nullptr;
    turnEnds_ = TimePoint::max();
    wakeFirst();
  }
  if (closed_) left_.notify_all();
}

void FreeReplicas::wakeFirst() {
  if (looking_ || waiting_.empty() || free_.empty()) return;
  looking_ = waiting_.front();
  waiting_.front()->ready_.notify_one();
}

void FreeReplicas::returnReplica(std::unique_ptr<FreeReplica> replica) {
  if (looking_ && ParallelInference::Clock::now() >= turnEnds_) {
    Loan& first = *waiting_.front();
    first.replica_ = std::move(replica);
    remove(first);
    first.ready_.notify_one();
    return;
  }
  free_.push_back(std::move(replica));  // does not allocate: the replica came from there
  wakeFirst();
  if (closed_) left_.notify_all();
}

std::int64_t FreeReplicas::waiting() const {
  const Lock lock(mutex_);
  return static_cast<std::int64_t>(waiting_.size());
}

void FreeReplicas::close() {
  Lock lock(mutex_);
  closed_ = true;
  while (!waiting_.empty() || free_.size() < all_) left_.wait(lock.native());
}

}  // namespace muster
