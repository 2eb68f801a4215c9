#pragma once

#include <atomic>

#include "muster/parallel/strategies/strategy.h"

namespace muster::test {

/// A rule that merges nothing: it counts its calls, and reports how many rounds it has planned.
class CountingRule final : public Strategy {
 public:
  explicit CountingRule(const StrategyTraits& of = {})
      : iterations(of.localWork == LocalWork::Gradient ? 1 : 2), traits_(of) {}
  std::string describe() const override { return "a rule"; }
  StrategyTraits traits(int) const override { return traits_; }
  RoundPlan plan(const TrainingProgress& progress) override {
    ++planned_.value;
    last = progress;
    const bool growing = grows && traits_.localWork == LocalWork::Step;
    return {.iterations = growing ? progress.rounds + 1 : iterations};
  }
  void prepare(const Round& round) override { prepared = round.iteration; }
  void land(int, const Round&, MergeOps&) override { ++landed; }
  void afterReduction(const Round&, MergeOps&) override { ++reduced; }
  bool pending() const override { return isPending; }
  MergeReport report() const override { return {.divergence = 0.5, .values = {&planned_, 1}}; }

  std::int64_t iterations;  ///< of each round
  bool grows = false;       ///< a round of steps has as many iterations as rounds are finished, and one more
  bool isPending = false;
  TrainingProgress last;
  std::int64_t prepared = -1;  ///< the iteration of the last round that is merged
  std::atomic<int> landed = 0, reduced = 0;

 private:
  const StrategyTraits traits_;
  MergeValue planned_{"planned", 0};
};

}  // namespace muster::test
