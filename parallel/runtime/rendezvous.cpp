#include "muster/parallel/runtime/rendezvous.h"

namespace muster {
namespace {

/// Spins until `over()` is true or `patience` has passed. Does not yield: if other programs want the core,
/// a yield may take a whole time slice, while a sleeping thread gets the core as soon as it is woken.
template <typename Over>
void spin(Over over, std::chrono::nanoseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!over() && std::chrono::steady_clock::now() < end) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
}

}  // namespace

bool Rendezvous::arrive(const std::function<Turn()>& last) {
  Lock lock(mutex_);
  ++arrived_;
  if (arrived_ == workers_ && aborted_) turned_.notify_one();
  if (aborted_) return false;
  const std::uint64_t generation = generation_;
  const auto over = [&] { return generation != generation_ || aborted_; };
  if (arrived_ == workers_) {
    if (!last || last() == Turn::Workers) {
      open();
      return true;
    }
    coordinatorsTurn_ = true;
    turned_.notify_one();
  } else if (patience_.count() > 0) {
    lock.unlock();
    spin([&] { return over() || coordinatorsTurn_; }, patience_);
    if (over()) return generation != generation_;
    lock.lock();
  }
  opened_.wait(lock.native(), over);
  return generation != generation_;  // if it opened before the abort, it opened for all workers
}

void Rendezvous::open() {
  arrived_ = 0;
  coordinatorsTurn_ = false;
  ++generation_;
  opened_.notify_all();
}

bool Rendezvous::await() {
  Lock lock(mutex_);
  turned_.wait(lock.native(), [&] { return coordinatorsTurn_ || aborted_; });
  return !aborted_;
}

bool Rendezvous::release() {
  const Lock lock(mutex_);
  if (aborted_) return false;
  open();
  return true;
}

void Rendezvous::awaitArrivals() {
  Lock lock(mutex_);
  while (arrived_ < workers_) turned_.wait(lock.native());
}

void Rendezvous::abort() {
  const Lock lock(mutex_);
  aborted_ = true;
  opened_.notify_all();
  turned_.notify_all();
}

}  // namespace muster
