#pragma once

#include <chrono>
#include <condition_variable>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/parallel/runtime/activity.h"

namespace muster {

/// Logs a stall while a `fit()` or `evaluate()` runs: a call of the user's code that does not return, or all
/// threads waiting. A thread that waits for a slow but working thread is not stalled. Watches from a thread
/// of its own, since any other thread may be stuck.
class StallWatch {
 public:
  /// A thread that is watched.
  struct Subject {
    std::string name;
    const Activity* activity;
  };

  StallWatch(std::vector<Subject> subjects, std::chrono::milliseconds patience);
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  /// The watch is on while an object of this class lives. `call` is named in the log, as in "fit()".
  class Scope {
   public:
    Scope(StallWatch& watch, std::string_view call) : watch_(watch) { watch_.setWatched(call); }
    ~Scope() { watch_.setWatched({}); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StallWatch& watch_;
  };

 private:
  void setWatched(std::string_view call);
  void loop(const std::stop_token& stop);
  bool stalled() const;
  std::string describe() const;

  const std::vector<Subject> subjects_;
  const std::chrono::milliseconds patience_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::string_view call_ MUSTER_GUARDED_BY(mutex_);  // "": the watch is off
  std::jthread thread_;                              // last: it ends before what it reads
};

}  // namespace muster
