#pragma once

#include <chrono>

#include "muster/parallel/runtime/activity.h"

namespace muster {

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
