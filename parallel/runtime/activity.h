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
    // Working:
    Replicating,
    InIterator,
    Computing,
    InListener,
    Merging,
    // Waiting for another thread:
    WaitingForData,
    WaitingForRoom,
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
  bool busy() const {
    const Kind kind = kind_;
    return kind >= Kind::Replicating && kind <= Kind::Merging;
  }
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

/// While an object of this class lives, its thread does one kind of work: shows it as the thread's activity,
/// and at the end adds its time to a sum. The activity stays set, so that the text of a failure can name it.
class Phase {
 public:
  /// @param sum  used by this thread only while the object lives. @param batch  see Activity::set.
  Phase(Activity& activity, Activity::Kind kind, std::chrono::nanoseconds& sum, std::int64_t batch = -1)
      : sum_(sum) {
    activity.set(kind, batch);  // after `begun_`: once the activity is visible, the time counts
  }
  ~Phase() { sum_ += Clock::now() - begun_; }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  const Clock::time_point begun_ = Clock::now();
  std::chrono::nanoseconds& sum_;
};

}  // namespace muster
