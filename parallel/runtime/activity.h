#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace muster {

/// What a thread is doing now, for the report of a stall. The thread writes it; any thread may read it.
class Activity {
 public:
  enum class Kind {
    Idle,
    Replicating,
    WaitingForData,
    WaitingForRoom,
    InIterator,
    Computing,
    InListener,
    Merging,
    WaitingForWorkers,
    InExchange  ///< waiting for the other workers in the middle of a step
  };

  using Clock = std::chrono::steady_clock;

  /// @param now  is called by several threads; tests pass their own clock.
  explicit Activity(std::function<Clock::time_point()> now = Clock::now) : now_(std::move(now)) {}

  /// @param batch  its number in the epoch, from 0; -1: none.
  void set(Kind kind, std::int64_t batch = -1);

  Kind kind() const { return kind_; }
  /// Whether the thread is working rather than waiting for another thread.
  bool busy() const;
  std::chrono::nanoseconds elapsed() const {
    return now_() - Clock::time_point(Clock::duration(since_.load()));
  }
  /// As in "computing (batch 57) for 12 s", with batches counted from 1; "" when idle.
  std::string describe() const;

 private:
  const std::function<Clock::time_point()> now_;
  std::atomic<Kind> kind_{Kind::Idle};
  std::atomic<std::int64_t> batch_{-1};
  std::atomic<Clock::rep> since_{0};
};

}  // namespace muster
