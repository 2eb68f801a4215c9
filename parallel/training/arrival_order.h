#pragma once

#include <span>
#include <vector>

#include "muster/parallel/strategies/arrivals.h"

namespace muster {

/// @throws InvalidArgument for a strategy's plan of arrivals that cannot be, naming the number.
void requireArrivals(const ArrivalPlan& plan, int workers);

/// Which worker gets which batch, and which workers arrive together, on the virtual clock: a function of the
/// plan and of the number of batches alone. It begins anew with every epoch.
///
/// A running worker gets batches until it has had all its iterations, and then arrives, at the time when it
/// has done them; events are ordered by (time, arrivals before batches, worker). Those who have arrived land
/// together: the grace after the first one, but not before one of them may go on, and at once if no worker is
/// running.
///
/// One object either deals or lands. To land it goes from arrival to arrival, however many iterations lie
/// between them.
class ArrivalOrder {
 public:
  explicit ArrivalOrder(ArrivalPlan plan);
  const ArrivalPlan& plan() const { return plan_; }

  /// An epoch begins: all workers run, at time 0.
  void restart();
  /// The worker that gets the next batch.
  int deal();
  /// Goes on to the next landing.
  void land();

  // The last landing, [worker].

  /// Without staleness.
  std::span<const Arrival> arrivals() const { return arrivals_; }
  /// Batches dealt between the landing before (or `restart`) and this one.
  std::span<const std::int64_t> dealt() const { return dealt_; }
  double time() const { return now_; }

 private:
  struct Member {
    bool running = true;
    bool pending = false;      // it has arrived and not landed
    double begun = 0;          // when it went on
    std::int64_t done = 0;     // iterations since then: dealt, or told by `dealt`
    std::int64_t arrived = 0;  // times
  };
  /// The running worker whose next event comes first, -1 if none runs. @param done  its iterations then
  template <typename Done>
  int nextRunning(Done done) const;
  /// Lands the workers that have arrived, if that comes before the next event, at `time`. @return whether it
  /// did.
  bool landsBefore(int next, double time);
  double clock(std::size_t worker, std::int64_t done) const;
  /// Iterations of a worker that begin before `now_`.
  std::int64_t begunIterations(std::size_t worker) const;
  bool mayGoOn(const Member& member) const { return member.arrived - slowest_ <= plan_.staleness; }
  bool mayLand() const;
  void arrive(Member& member);
  void landNow();

  const ArrivalPlan plan_;
  std::vector<Member> members_;
  std::vector<Arrival> arrivals_;
  std::vector<std::int64_t> dealt_;
  std::int64_t pending_ = 0;
  std::int64_t slowest_ = 0;  // times that the slowest worker has arrived
  double opened_ = 0;         // when the first of those pending arrived
  double now_ = 0;
};

}  // namespace muster
