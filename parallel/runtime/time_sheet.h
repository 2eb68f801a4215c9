#pragma once

#include <mutex>

#include "muster/core/nn/listener.h"

namespace muster {

/// A worker's times: its own, and a copy that others read.
class TimeSheet {
 public:
  WorkerTimes own;  // the worker's thread only; others while it does nothing

  /// Shows the present times to others.
  void publish() {
    std::scoped_lock lock(mutex_);
    published_ = own;
  }
  /// As last published. Thread-safe.
  WorkerTimes published() const {
    std::scoped_lock lock(mutex_);
    return published_;
  }

 private:
  mutable std::mutex mutex_;
  WorkerTimes published_;  // guarded by mutex_
};

}  // namespace muster
