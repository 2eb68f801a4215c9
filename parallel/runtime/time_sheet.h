#pragma once

#include <mutex>

#include "muster/core/nn/listener.h"

namespace muster {

/// A worker's times, and a copy of them for other threads.
class TimeSheet {
 public:
  WorkerTimes own;  // the worker's thread only; others while it runs no task

  /// Copies the present times for other threads.
  void publish() {
    std::scoped_lock lock(mutex_);
    published_ = own;
  }
  /// The times when `publish` was last called. Thread-safe.
  WorkerTimes published() const {
    std::scoped_lock lock(mutex_);
    return published_;
  }

 private:
  mutable std::mutex mutex_;
  WorkerTimes published_;  // guarded by mutex_
};

}  // namespace muster
