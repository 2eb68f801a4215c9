#include "muster/parallel/worker/barrier.h"

namespace muster {

bool Barrier::arriveLocked(std::unique_lock<std::mutex>&, const std::function<void()>& last) {
  if (++arrived_ < parties_) return false;
  if (last) last();
  arrived_ = 0;
  ++generation_;
  changed_.notify_all();
  return true;
}

bool Barrier::arrive(const std::function<void()>& last) {
  std::unique_lock lock(mutex_);
  if (aborted_) return false;
  const auto generation = generation_;
  if (!arriveLocked(lock, last)) changed_.wait(lock, [&] { return generation != generation_ || aborted_; });
  return generation != generation_;
}

bool Barrier::arrive(std::chrono::milliseconds patience, const std::function<void()>& stalled) {
  std::unique_lock lock(mutex_);
  if (aborted_) return false;
  const auto generation = generation_;
  if (arriveLocked(lock, {})) return true;
  while (!changed_.wait_for(lock, patience, [&] { return generation != generation_ || aborted_; })) {
    lock.unlock();  // whoever reports must not hold up those who arrive
    stalled();
    lock.lock();
  }
  return generation != generation_;
}

void Barrier::abort() {
  std::scoped_lock lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
}

}  // namespace muster
