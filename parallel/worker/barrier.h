#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace muster {

/// A reusable barrier that can be aborted. All members are thread-safe.
class Barrier {
 public:
  explicit Barrier(int parties) : parties_(parties) {}

  /// Waits until all parties have arrived. The last one runs `last`, if given, before anybody goes on.
  /// @return false, at once, if the barrier was aborted.
  bool arrive(const std::function<void()>& last = {});

  /// Wakes everyone; from now on `arrive` returns false.
  void abort();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const int parties_;
  int arrived_ = 0;               // guarded by mutex_
  std::uint64_t generation_ = 0;  // guarded by mutex_
  bool aborted_ = false;          // guarded by mutex_
};

}  // namespace muster
