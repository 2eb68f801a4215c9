#pragma once

#include <atomic>
#include <exception>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/mutex.h"

namespace muster {

/// The first failure of a training; later ones are dropped. Thread-safe.
class FirstFailure {
 public:
  /// @param worker  -1 for the iterator, a merged listener or the coordinator.
  /// @param where  returns the place as text, as in "worker 1 on cpu failed in batch 4 of epoch 1".
  template <typename Where>
  void set(int worker, std::exception_ptr cause, Where where) noexcept {
    auto failure = cause;
    try {
      const auto text = fmt::format("{}: {}", where(), describe(cause));
      failure = std::make_exception_ptr(TrainingError(text, worker, cause));
    } catch (...) {  // no memory for the text: keep the cause alone
    }
    const Lock lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    failed_ = true;
  }
  explicit operator bool() const { return failed_; }
  /// Throws the failure, if there was one.
  void rethrow() const {
    const Lock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::atomic<bool> failed_{false};
  mutable Mutex mutex_;
  std::exception_ptr failure_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
