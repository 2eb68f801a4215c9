#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "muster/core/optim/schedule.h"
#include "muster/parallel/strategies/strategy_traits.h"

namespace muster {

/// @throws InvalidArgument if a strategy's plan of arrivals is impossible, naming the number.
void requireArrivals(const ArrivalPlan& plan, int workers);

/// Which worker gets which batch, and which workers arrive together, on the virtual clock: a function of the
/// plan and of the number of batches alone. It starts again with every epoch.
///
/// A running worker gets batches until it has had all its iterations, and arrives at the virtual time when
/// it has done them; events are ordered by (time, arrivals before batches, worker). Workers that have arrived
/// land together: `grace` after the first one, but not before one of them may continue, and at once if no
/// worker is running. With grace 0 each lands by itself, in the order of arrival (unless all wait for all:
/// staleness 0), and those that may continue do so with the last of them.
///
/// On the wall clock (ArrivalPlan::wallClock) workers arrive when they say so: those that have arrived land
/// together, as soon as one may continue.
///
/// A value. An object is used for `deal`, for `land`, or for the functions of the wall clock; it may only
/// land before its first deal, too. `land` steps from arrival to arrival.
class ArrivalOrder {
 public:
  /// Begins an epoch at iteration 0. @param learningRate  of the model's updater.
  /// @throws InvalidArgument, as all that lets a worker depart, if ArrivalPlan::iterationsFrom gives less
  /// than 1.
  explicit ArrivalOrder(ArrivalPlan plan, const Schedule& learningRate = {});
  const ArrivalPlan& plan() const { return rule_->plan; }

  /// Begins an epoch after this many iterations and epochs: all workers run, at time 0.
  void restart(std::int64_t iteration, std::int64_t epoch);
  /// The worker that gets the next batch.
  int deal();
  /// Advances to the next landing.
  void land();
  /// Batches dealt since the epoch began, by `deal` or before the last landing.
  std::int64_t batches() const { return batches_; }

  // On the wall clock.

  /// Whether the worker has not arrived since its last departure.
  bool runs(int worker) const { return members_[static_cast<std::size_t>(worker)].running; }
  /// A worker that runs has arrived.
  void arrive(int worker) { arrive(members_[static_cast<std::size_t>(worker)]); }
  /// Lands the workers that have arrived; none if no landing is possible yet.
  void landArrived();
  /// A worker that has landed continues, after this many iterations.
  void depart(int worker, std::int64_t iteration);

  // The last landing, [worker].

  /// The workers of the landing; their staleness is not set.
  std::span<const Arrival> arrivals() const { return arrivals_; }
  /// Batches dealt between the previous landing (or `restart`) and this one.
  std::span<const std::int64_t> dealt() const { return dealt_; }
  double time() const { return now_; }
  /// The worker's iterations from its last departure to its next arrival.
  std::int64_t iterations(int worker) const { return members_[static_cast<std::size_t>(worker)].iterations; }

 private:
  struct Member {
    bool running = true;
    bool pending = false;         // it has arrived and not landed
    double begun = 0;             // time of its last departure
    std::int64_t iterations = 1;  // from then until it arrives
    std::int64_t done = 0;        // from then on: dealt, or counted by `dealt`
    std::int64_t arrived = 0;     // number of its arrivals
  };
  /// The running worker whose next event comes first, -1 if none runs.
  /// @param done  `done(worker)`: its iterations at that event.
  template <typename Done>
  int nextRunning(Done done) const;
  /// Lands the workers that have arrived, if that comes before the event of worker `next` at `time`.
  /// @return whether they landed.
  bool landsBefore(int next, double time);
  double clock(std::size_t worker, std::int64_t done) const {
    return members_[worker].begun + static_cast<double>(done) / plan().speeds[worker];
  }
  /// Iterations of a worker that begin before `now_`.
  std::int64_t begunIterations(std::size_t worker) const;
  bool mayGoOn(const Member& member) const { return member.arrived - slowest_ <= plan().staleness; }
  bool mayLand() const;
  void arrive(Member& member);
  std::size_t firstPending() const;
  void landNow();

  struct Rule {
    ArrivalPlan plan;
    Schedule learningRate;
  };
  std::shared_ptr<const Rule> rule_;  // shared by copies, so that a copy into another order allocates nothing
  std::vector<Member> members_;
  std::vector<Arrival> arrivals_;
  std::vector<std::int64_t> dealt_;
  std::int64_t iteration_ = 0, epoch_ = 0;  // at which the epoch began
  std::int64_t batches_ = 0;
  std::int64_t pending_ = 0;
  std::int64_t slowest_ = 0;  // arrivals of the worker with the fewest
  double opened_ = 0;         // when the first pending worker arrived
  double now_ = 0;
};

}  // namespace muster
