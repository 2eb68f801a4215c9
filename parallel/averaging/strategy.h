#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "muster/parallel/collective/collective.h"

namespace muster {

/// What a strategy may decide by: counters and merged scores, the same in every run.
struct MeetingInfo {
  std::int64_t epoch = 0;
  std::int64_t iteration = 0;  ///< finished
  std::int64_t meetings = 0;   ///< held in this `fit()`
  double score = 0;            ///< mean since the meeting before
};

/// Decides when replicas meet and by which rule their states are joined. Moving the numbers is the
/// collective's affair.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Local iterations of each worker until the next meeting, at least 1. Asked by one thread, before the
  /// first meeting of an epoch and after each.
  virtual std::int64_t iterationsUntilMeeting(const MeetingInfo& info) = 0;
  /// One participant's part in a meeting, on its own thread, while all others do theirs. Scores are finite.
  /// @param weights  [worker] loss normaliser of what each has processed since the last meeting; not all 0.
  virtual void meet(int participant, Collective& collective, std::span<const double> weights,
                    Context& context) = 0;
  /// Whether the same run gives the same bits, however threads are scheduled.
  virtual bool reproducible() const { return true; }
  /// For the line that tells the plan, as in "averaging every 3 iterations".
  virtual std::string describe() const = 0;
};

}  // namespace muster
