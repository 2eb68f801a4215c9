#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/parallel/strategies/strategy.h"

namespace muster {

/// Which fragments are launched and land at the end of each round, and with which weights. Used by one thread
/// at a time, except `call`.
class FragmentFlights {
 public:
  FragmentFlights() = default;
  explicit FragmentFlights(std::size_t workers) : workers_(workers) {}

  /// Before the first round: nothing is in flight, unless `resume` was called. Allocates.
  /// @throws InvalidArgument unless 1 <= fragments <= 64; SavedStateError if `resume` has restored another
  ///         number of fragments.
  void begin(int fragments);
  /// 0 before `begin` and `resume`.
  int fragments() const { return static_cast<int>(fragments_.size()); }
  FragmentSet inFlight() const { return inFlight_; }
  /// For a checkpoint, between rounds: for each fragment the weights since its last launch, the weights of
  /// that launch (both [worker]), and the launch's iteration.
  std::vector<double> weights() const;
  /// Restores what a checkpoint holds. @throws SavedStateError if no number of fragments has these weights.
  void resume(FragmentSet inFlight, std::span<const double> weights);
  /// Whether a fragment is in flight, or workers have trained since its launch.
  bool outstanding() const;
  /// Whether a fragment is launched, and whether one lands, at the end of the round that `endRound` was
  /// called for last.
  bool launched() const { return launched_; }
  bool landed() const { return !(landFirst_ | landAfterwards_).empty(); }

  /// Decides what is launched and lands at the end of a round.
  /// @param round  with the weights of the round, all 0 if nothing was trained.
  /// @param pending  the strategy has something left to land, though nothing was trained.
  /// @throws InvalidArgument for a plan that launches a fragment again before it lands.
  void endRound(const RoundPlan& plan, const Round& round, bool pending);
  /// Calls the strategy for one participant, as decided. Several threads may call it, each for its own
  /// participant.
  void call(Strategy& strategy, const Round& round, MergeOps& ops) const;
  /// Call it after `call` has returned for all participants.
  void commit();

 private:
  struct Fragment {
    std::vector<double> sinceLaunch, launched;  // [worker] weights
    std::int64_t launchedAt = 0,
                 launchesAt = 0;  // iterations finished at the last launch, and at this round's end
  };

  std::size_t workers_ = 0;
  std::vector<Fragment> fragments_;
  FragmentSet inFlight_;                             // launched and not landed
  FragmentSet landFirst_, launch_, landAfterwards_;  // at this round's end
  bool launched_ = false;                            // likewise; `commit` empties launch_
};

}  // namespace muster
