#include "muster/parallel/inference/call_group.h"

namespace muster {

void CallGroup::waitUntilAnswered() {
  Lock lock(mutex_);
  while (!answered_) changed_.wait(lock.native());
}

bool CallGroup::waitUntilAnswered(ParallelInference::Clock::time_point deadline) {
  if (deadline == ParallelInference::kNoDeadline) {
    waitUntilAnswered();
    return true;
  }
  Lock lock(mutex_);
  while (!answered_)
    if (changed_.wait_until(lock.native(), deadline) == std::cv_status::timeout) return answered_;
  return true;
}

void CallGroup::answer() {
  {
    const Lock lock(mutex_);
    answered_ = true;
  }
  changed_.notify_all();  // without the mutex, for which all callers would wait
}

}  // namespace muster
