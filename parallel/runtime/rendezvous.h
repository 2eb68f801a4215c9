#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>

#include "muster/core/base/mutex.h"

namespace muster {

/// Where the workers of a training wait for each other. The one that arrives last decides whether all
/// continue, or the coordinator first has its turn: the thread that started the workers. All members are
/// thread-safe.
class Rendezvous {
 public:
  enum class Turn { Workers, Coordinator };

  /// @param patience  how long a worker spins before it sleeps: waking up takes longer than a short wait.
  ///                  Above 0 only if each worker has a core. In the coordinator's turn workers sleep.
  explicit Rendezvous(int workers, std::chrono::nanoseconds patience = {})
      : patience_(patience), workers_(workers) {}

  /// Waits until all workers have arrived and may continue. The last one calls `last`, if given, before any
  /// of them continues. @return false, at once, after an abort.
  bool arrive(const std::function<Turn()>& last = {});

  // For the coordinator.

  /// Waits for its turn. @return false after an abort.
  bool await();
  /// Ends its turn: the workers continue. @return false after an abort; then none does.
  bool release();
  /// Waits until all workers that `release` has let continue have called `arrive` again, also after an abort.
  void awaitArrivals();

  /// Wakes all waiting threads; from now on `arrive`, `await` and `release` return false.
  void abort();

 private:
  void open() MUSTER_REQUIRES(mutex_);

  const std::chrono::nanoseconds patience_;
  const int workers_;
  Mutex mutex_;
  std::condition_variable opened_, turned_;  // for workers, for the coordinator
  int arrived_ MUSTER_GUARDED_BY(mutex_) = 0;
  // Written under mutex_:
  std::atomic<std::uint64_t> generation_{0};  // not after aborted_ is set
  std::atomic<bool> coordinatorsTurn_{false};
  std::atomic<bool> aborted_{false};
};

}  // namespace muster
