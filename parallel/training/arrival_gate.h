#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/parallel/strategies/strategy_traits.h"

namespace muster {

/// For arrivals without a barrier: each worker waits until it may continue. The worker whose arrival
/// completes a landing carries it out, one landing at a time, in planned order. Thread-safe, except
/// `beginEpoch`.
class ArrivalGate {
 public:
  /// [worker] Which workers arrive at the next landing, or none while it is not known.
  using Next = std::function<std::span<const Arrival>()>;
  /// @param next  is called while no `enter` and no `land` runs.
  /// @param anyEndEndsAll  true on the wall clock: if one worker has no batches left, none has.
  ArrivalGate(int workers, Next next, bool anyEndEndsAll = false)
      : anyEndEndsAll_(anyEndEndsAll),
        next_(std::move(next)),
        changed_(static_cast<std::size_t>(workers)),
        states_(static_cast<std::size_t>(workers)) {}

  /// Call it while no worker is inside.
  void beginEpoch();

  /// The worker has arrived. Waits until it may continue, or until the next landing has become impossible.
  /// Makes these calls, one at a time over all workers:
  /// @param enter  `void enter()`, first.
  /// @param land  `std::span<const Arrival> land()`, for each landing that is complete: carries it out, and
  ///              plans another one. @return the landing that was carried out.
  /// @param leave  `void leave()`, last, unless the gate was aborted.
  /// If `enter` or `land` throws, the gate is aborted: no other worker lands after an unfinished landing.
  /// @return false after an abort.
  template <typename Enter, typename Land, typename Leave>
  bool pass(int worker, Enter enter, Land land, Leave leave) {
    Lock lock(mutex_);
    if (aborted_) return false;
    const auto index = static_cast<std::size_t>(worker);
    State& own = states_[index];
    try {
      enter();
      own = State::Arrived;
      while (complete()) release(land());
    } catch (...) {
      abortNow();
      throw;
    }
    while (own != State::Running && !over_ && !aborted_) changed_[index].wait(lock.native());
    if (aborted_) return false;
    own = State::Running;
    leave();
    return true;
  }
  /// The worker will not arrive again in the epoch. @param bring  `void bring()`, called at once.
  template <typename Bring>
  void end(int worker, Bring bring) {
    const Lock lock(mutex_);
    bring();
    states_[static_cast<std::size_t>(worker)] = State::Ended;
    refresh();
  }
  /// Wakes all waiting threads; from now on `pass` returns false.
  void abort();

 private:
  enum class State { Running, Arrived, Landed, Ended };

  void abortNow() MUSTER_REQUIRES(mutex_);
  void wakeAll() MUSTER_REQUIRES(mutex_) {
    for (auto& changed : changed_) changed.notify_one();
  }
  bool complete() const MUSTER_REQUIRES(mutex_);
  void release(std::span<const Arrival> landed) MUSTER_REQUIRES(mutex_);
  /// Sets `over_` if a worker of the next landing has ended, since that landing is then impossible.
  void refresh() MUSTER_REQUIRES(mutex_);

  const bool anyEndEndsAll_;
  const Next next_;
  Mutex mutex_;
  std::vector<std::condition_variable> changed_;         // [worker] a landing wakes only those that continue
  std::vector<State> states_ MUSTER_GUARDED_BY(mutex_);  // [worker]
  bool over_ MUSTER_GUARDED_BY(mutex_) = false;          // no further landing is possible in the epoch
  bool aborted_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster
