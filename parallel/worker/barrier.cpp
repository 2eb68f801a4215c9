#include "muster/parallel/worker/barrier.h"

namespace muster {

bool Barrier::arrive(const std::function<void()>& last) {
  std::unique_lock lock(mutex_);
  if (aborted_) return false;
  const auto generation = generation_;
  if (++arrived_ < parties_) {
    changed_.wait(lock, [&] { return generation != generation_ || aborted_; });
    return generation != generation_;  // let through before the abort: then so were all others
  }
  if (last) last();
  arrived_ = 0;
  ++generation_;
  changed_.notify_all();
  return true;
}

void Barrier::abort() {
  std::scoped_lock lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
}

}  // namespace muster
