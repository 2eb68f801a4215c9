#include "muster/parallel/inference/call_group.h"

namespace muster {

bool waitUntil(std::condition_variable& changed, Lock& lock, ParallelInference::Clock::time_point deadline) {
  if (deadline != ParallelInference::kNoDeadline)
    return changed.wait_until(lock.native(), deadline) == std::cv_status::no_timeout;
  changed.wait(lock.native());
  return true;
}

bool CallGroup::waitUntilAnswered(ParallelInference::Clock::time_point deadline) {
  Lock lock(mutex_);
  while (!answered_ && waitUntil(changed_, lock, deadline)) {
  }
  return answered_;
}

void CallGroup::answer() {
  {
    const Lock lock(mutex_);
    answered_ = true;
  }
  changed_.notify_all();  // without the mutex, for which all callers would wait
}

}  // namespace muster
