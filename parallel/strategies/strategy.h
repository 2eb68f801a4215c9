#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "muster/parallel/exchange/exchange.h"

namespace muster {

/// What a strategy may decide by: counters and merged scores, the same in every run.
struct MeetingInfo {
  std::int64_t epoch = 0;
  std::int64_t iteration = 0;  ///< finished
  std::int64_t meetings = 0;   ///< held in this `fit()`
  double score = 0;            ///< mean since the meeting before
};

/// What everybody has brought to a meeting.
struct Round {
  /// [worker] loss normaliser since the last meeting; all 0 only where the strategy was `pending`.
  std::span<const double> weights;
  std::int64_t iteration = 0;  ///< finished
  bool last = false;           ///< of its epoch, or the run stops after it
};

/// What a worker does with a batch between meetings.
enum class LocalWork {
  Step,     ///< a whole step; the exchange's shadow holds the state of the last meeting
  Gradient  ///< the gradient alone; the meeting ends with every replica updating itself by what was reduced
};

/// Decides when replicas meet, for what, and by which rule it is joined. Moving the numbers is the
/// exchange's affair.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// A training begins: replicas and shadow hold the user's model. Makes what the strategy needs beside them.
  /// @throws InvalidArgument for a model that it cannot train.
  virtual void begin(const Exchange&) {}
  virtual LocalWork localWork() const { return LocalWork::Step; }
  /// Local iterations of each worker until the next meeting, at least 1; 1 where local work is a gradient.
  /// Asked by one thread, before the first meeting of an epoch and after each.
  virtual std::int64_t iterationsUntilMeeting(const MeetingInfo& info) = 0;
  /// Prepares what a participant that has trained brings to the meeting, on its own thread; waits for nobody.
  /// @param weight  its loss normaliser since the last meeting; with 0, and others above, it will not count.
  virtual void contribute(int /*participant*/, double /*weight*/, Exchange&, Context&) {}
  /// One participant trains alone, and is about to go on before the scores of its round are read: prepares
  /// the meeting, which then is the exchange's `takeStaged` alone, without `contribute` and `meet`. On its
  /// own thread. @return false where the strategy needs these two; nothing was done then.
  virtual bool stage(Exchange&, Context&) { return false; }
  /// One participant's part in a meeting, on its own thread, while all others do theirs. Scores are finite.
  /// @return the bytes that this participant would have to send to the others, each counted once.
  virtual std::int64_t meet(int participant, const Round& round, Exchange& exchange, Context& context) = 0;
  /// Where local work is a gradient, a participant's part between the reduction and its update: nothing can
  /// stop the others from here on, so state may be merged. @return as `meet`.
  virtual std::int64_t settle(int /*participant*/, const Round&, Exchange&, Context&) { return 0; }
  /// Whether something is left to be exchanged at the end of an epoch or at a stop, though nobody has trained
  /// since the last meeting. Asked while everybody waits.
  virtual bool pending() const { return false; }
  /// How far the replicas were from their mean before the last meeting joined them, where it was measured:
  /// sqrt(sum_w weights[w] |x_w - m|^2 / sum_w weights[w]) / |m|. Asked when everybody has met.
  virtual double divergence() const { return 0; }
  /// Whether the same run gives the same bits, however threads are scheduled.
  virtual bool reproducible() const { return true; }
  /// For the line that tells the plan, as in "averaging every 3 iterations".
  virtual std::string describe() const = 0;
};

}  // namespace muster
