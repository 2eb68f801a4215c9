#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>

#include "muster/core/base/mutex.h"

namespace muster {

/// A reusable barrier that can be aborted. All members are thread-safe.
class Barrier {
 public:
  /// @param parties  threads that have to arrive.
  /// @param patience  how long a waiting thread spins before it sleeps: waking up takes longer than a short
  ///                  wait. Above 0 only if each thread has a core.
  explicit Barrier(int parties, std::chrono::nanoseconds patience = {})
      : patience_(patience), parties_(parties) {}

  /// Waits until all threads have arrived. The last thread runs `last`, if given, before any thread
  /// continues.
  /// @return false, at once, if the barrier was aborted.
  bool arrive(const std::function<void()>& last = {});

  /// Wakes all waiting threads; from now on `arrive` returns false.
  void abort();

 private:
  const std::chrono::nanoseconds patience_;
  Mutex mutex_;
  std::condition_variable changed_;
  const int parties_;
  int arrived_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> generation_{0};  // written under mutex_, not after aborted_ is set
  std::atomic<bool> aborted_{false};          // written under mutex_
};

}  // namespace muster
