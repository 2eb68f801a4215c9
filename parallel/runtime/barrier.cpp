#include "muster/parallel/runtime/barrier.h"

namespace muster {
namespace {

/// Spins until `over()` is true or `patience` has passed. Does not yield: if other programs want the core,
/// a yield may take a whole time slice, while a sleeping thread gets the core as soon as it is woken.
/// @return whether `over()` is true.
template <typename Over>
bool lookFor(Over over, std::chrono::nanoseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!over()) {
    if (std::chrono::steady_clock::now() >= end) return false;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  return true;
}

}  // namespace

bool Barrier::arrive(const std::function<void()>& last) {
  Lock lock(mutex_);
  if (aborted_) return false;
  const std::uint64_t generation = generation_;
  if (++arrived_ < parties_) {
    const auto over = [&] { return generation != generation_ || aborted_; };
    if (patience_.count() > 0) {
      lock.unlock();
      if (lookFor(over, patience_)) return generation != generation_;
      lock.lock();
    }
    changed_.wait(lock.native(), over);
    return generation != generation_;  // if the barrier opened before the abort, it opened for all threads
  }
  if (last) last();
  arrived_ = 0;
  ++generation_;
  changed_.notify_all();
  return true;
}

void Barrier::abort() {
  const Lock lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
}

}  // namespace muster
