#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "muster/parallel/worker/activity.h"

namespace muster {

/// Logs who has been at one thing for too long while a `fit()` runs: a call of the user's that does not come
/// back, or everybody waiting. Who merely waits for a slow but moving one is no stall. Looks from a thread
/// of its own, since any other may be the one that is stuck.
class StallWatch {
 public:
  struct Subject {
    std::string name;
    const Activity* activity;
  };

  StallWatch(std::vector<Subject> subjects, std::chrono::milliseconds patience);
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  /// While it lives, the watch looks.
  class Shift {
   public:
    explicit Shift(StallWatch& watch) : watch_(watch) { watch_.setWatching(true); }
    ~Shift() { watch_.setWatching(false); }
    Shift(const Shift&) = delete;
    Shift& operator=(const Shift&) = delete;

   private:
    StallWatch& watch_;
  };

 private:
  void setWatching(bool watching);
  void loop(const std::stop_token& stop);
  bool stalled() const;
  void report() const noexcept;

  const std::vector<Subject> subjects_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool watching_ = false;  // guarded by mutex_
  std::jthread thread_;    // last: it ends before what it looks at
};

}  // namespace muster
