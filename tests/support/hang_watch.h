#pragma once

#include <condition_variable>
#include <cstdio>

#include "tests/support/standard.h"

namespace muster::test {

/// Aborts the process if a trial hangs, with a message that names it; CTest's time limit would not name it. A
/// trial of milliseconds may take seconds on a loaded machine, but never two minutes.
class HangWatch {
 public:
  explicit HangWatch(std::string what) : what_(std::move(what)), thread_([this] { watch(); }) {}
  ~HangWatch() {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  /// A trial begins. Allocates nothing.
  void begin(long trial) {
    const std::scoped_lock lock(mutex_);
    trial_ = trial;
    begun_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kLongest{2};

  void watch() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_until(lock, begun_ + kLongest, [this] { return over_; })) {
      if (Clock::now() < begun_ + kLongest) continue;  // another trial has begun meanwhile
      std::fprintf(stderr, "%s: trial %ld hangs\n", what_.c_str(), trial_);
      std::abort();
    }
  }

  const std::string what_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;  // guarded by mutex_, like the following members
  long trial_ = 0;
  Clock::time_point begun_ = Clock::now();
  std::thread thread_;  // last: it reads the other members
};

}  // namespace muster::test
