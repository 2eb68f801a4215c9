#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace muster {

/// A reusable barrier that can be aborted. All members are thread-safe.
class Barrier {
 public:
  /// @param patience  for so long a party that waits looks again and again whether all have come, before it
  ///                  sleeps: being woken takes longer than a short wait. Only for parties with a core each.
  explicit Barrier(int parties, std::chrono::nanoseconds patience = {})
      : patience_(patience), parties_(parties) {}

  /// Waits until all parties have arrived. The last one runs `last`, if given, before anybody goes on.
  /// @return false, at once, if the barrier was aborted.
  bool arrive(const std::function<void()>& last = {});

  /// Wakes everyone; from now on `arrive` returns false.
  void abort();

 private:
  const std::chrono::nanoseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const int parties_;
  int arrived_ = 0;                           // guarded by mutex_
  std::atomic<std::uint64_t> generation_{0};  // written under mutex_, and never once aborted_ is set
  std::atomic<bool> aborted_{false};          // likewise written
};

}  // namespace muster
