#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/parallel/strategies/strategy.h"

namespace muster {

/// Which fragments are launched and land at the end of each round, and with which weights. Used by one thread
/// at a time, but for `call`.
class FragmentFlights {
 public:
  explicit FragmentFlights(std::size_t workers) : workers_(workers) {}

  /// Before the first round: nothing is in flight. Allocates. @throws InvalidArgument unless 1 <= fragments
  /// <= 64.
  void begin(int fragments);
  FragmentSet inFlight() const { return inFlight_; }
  /// Between rounds, for a checkpoint: of each fragment its weights since the last launch and of that launch,
  /// both [worker], and the launch's iteration.
  std::vector<double> weights() const;
  /// After `begin`: as they were there. @throws InvalidArgument for another number of weights.
  void resume(FragmentSet inFlight, std::span<const double> weights);
  /// Whether a fragment is in flight, or workers have trained since its launch.
  bool outstanding() const;

  /// A round has ended: decides what happens at its end.
  /// @param round  its weights are those of the round, all 0 if nothing was trained.
  /// @param pending  the strategy has something left to land, though nothing was trained.
  /// @throws InvalidArgument for a plan that launches a fragment again before it lands.
  void endRound(const RoundPlan& plan, const Round& round, bool pending);
  /// Calls the strategy for one participant, as decided. Several threads may, each for its participant.
  void call(Strategy& strategy, const Round& round, Verbs& verbs) const;
  /// All participants have called.
  void commit();

 private:
  struct Fragment {
    std::vector<double> sinceLaunch, launched;  // [worker] weights
    std::int64_t launchedAt = 0,
                 launchesAt = 0;  // iterations finished; of the launch before, of this round's
  };

  const std::size_t workers_;
  std::vector<Fragment> fragments_;
  FragmentSet inFlight_;                             // launched and not landed
  FragmentSet landFirst_, launch_, landAfterwards_;  // at this round's end
};

}  // namespace muster
