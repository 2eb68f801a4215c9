#pragma once

#include "muster/core/base/mutex.h"
#include "muster/core/nn/listener.h"

namespace muster {

/// A worker's times, and a copy of them for other threads.
class TimeSheet {
 public:
  WorkerTimes own;  // used by the worker's thread; by others only while it runs no task

  /// Copies the current times for other threads.
  void publish() {
    const Lock lock(mutex_);
    published_ = own;
  }
  /// The times when `publish` was last called. Thread-safe.
  WorkerTimes published() const {
    const Lock lock(mutex_);
    return published_;
  }

 private:
  mutable Mutex mutex_;
  WorkerTimes published_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
