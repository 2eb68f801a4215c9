#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/mutex.h"

namespace muster {

/// The first failure of a training, or the earliest of an evaluation; others are dropped. Thread-safe.
class FirstFailure {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// @param worker  -1 for the iterator, a merged listener or the coordinator.
  /// @param where  returns the place as text, as in "worker 1 on cpu failed in batch 4 of epoch 1".
  /// @param at  of two failures, the one with the smaller number is kept.
  template <typename Where>
  void set(int worker, std::exception_ptr cause, Where where, std::int64_t at = 0) noexcept {
    auto failure = cause;
    try {
      const auto text = fmt::format("{}: {}", where(), describe(cause));
      failure = std::make_exception_ptr(TrainingError(text, worker, cause));
    } catch (...) {  // no memory for the text: keep the cause alone
    }
    const Lock lock(mutex_);
    if (at >= at_) return;
    failure_ = std::move(failure);
    at_ = at;
  }
  explicit operator bool() const { return at_ != kNever; }
  /// The number of the failure that is kept; kNever if there is none.
  std::int64_t at() const { return at_; }
  /// Throws the failure, if there was one.
  void rethrow() const {
    const Lock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::atomic<std::int64_t> at_{kNever};
  mutable Mutex mutex_;
  std::exception_ptr failure_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
