#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/core/nn/listener.h"
#include "muster/parallel/exchange/merge_ops.h"
#include "muster/parallel/strategies/strategy_traits.h"

namespace muster {

struct NamedStrategy;

/// A set of fragments, which a strategy numbers from 0 to at most 63.
struct FragmentSet {
  std::uint64_t bits = 0;

  static constexpr FragmentSet none() { return {}; }
  static constexpr FragmentSet of(int fragment) { return {std::uint64_t{1} << fragment}; }
  /// The first `count`.
  static constexpr FragmentSet all(int count = 64) {
    return {count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1};
  }
  constexpr bool contains(int fragment) const { return (bits >> fragment & 1) != 0; }
  constexpr bool empty() const { return bits == 0; }
  constexpr FragmentSet operator&(FragmentSet other) const { return {bits & other.bits}; }
  constexpr FragmentSet operator|(FragmentSet other) const { return {bits | other.bits}; }
  constexpr FragmentSet operator~() const { return {~bits}; }
};

/// The numbers by which a strategy may decide: the same in every run, whatever the timing.
struct TrainingProgress {
  int workers = 1;
  std::int64_t epoch = 0;
  std::int64_t iteration = 0;  ///< finished, over the life of the model
  std::int64_t rounds = 0;     ///< finished in this `fit()`
  double score = 0;            ///< mean over the last round; 0 before the first
  double learningRate = 0;     ///< of the next step, by the schedule of the model's updater
  FragmentSet inFlight = {};   ///< launched and not landed; none when an epoch begins
};

/// The next round and what happens at its end.
struct RoundPlan {
  std::int64_t iterations = 1;  ///< local iterations of each worker until then, at least 1
  FragmentSet launch = FragmentSet::all();
  FragmentSet land = FragmentSet::all();
};

/// A round at its end.
struct Round {
  /// [worker] `launch` gets the loss normaliser since the last launch of the fragment, `land` gets what its
  /// launch got; all 0 if the strategy was `pending` and nothing is launched.
  std::span<const double> weights;
  std::int64_t iteration = 0;  ///< finished
  std::int64_t planned = 0;    ///< iterations of the round, by its plan
  bool last = false;           ///< of its epoch, or the run stops after it
  std::int64_t launched = 0;   ///< the iteration of the fragment's launch
  bool landsAtOnce = false;    ///< in `launch`: the fragment lands at the end of this round
  bool measured = false;       ///< a listener reads `divergence`: measure it; nothing else depends on this
  /// [worker] of a strategy with arrivals: which workers are merged, and which continue; else empty. In the
  /// last round all continue, and those with a weight are merged.
  std::span<const Arrival> arrivals = {};
};

/// What a strategy reports to listeners about the last round.
struct MergeReport {
  MergeKind kind = MergeKind::State;
  /// How far the replicas were from their mean, if it was measured:
  /// sqrt(sum_w weights[w] |x_w - m|^2 / sum_w weights[w]) / |m|.
  double divergence = 0;
  /// Further numbers (MergeEvent::values): the same names in the same order every time, which outlive the
  /// strategy. The numbers are copied before the next call of the strategy.
  std::span<const MergeValue> values = {};
};

/// When replicas are merged, and by which rule. To write your own rule, derive from Strategy and give the
/// builder an option struct whose `make` returns it (see StrategyOptions). A simple rule overrides
/// `describe`, `plan` and `land`; all others have defaults. The same code runs on CPU replicas and on GPUs.
///
/// A strategy decides by TrainingProgress alone and computes by MergeOps alone, so that a run gives the same
/// bits every time.
///
/// At the end of a round all workers wait for each other. Then every worker calls `launch` and `land` on its
/// own thread. For each fragment, in order: it lands if it is in flight and the plan says so; it is launched
/// if the plan says so; and if it was not in flight and both say so, it lands at once. A fragment in flight
/// is not launched again before it lands. At the end of an epoch and at a stop everything in flight lands,
/// and each fragment that was trained since its launch is launched and lands at once. A failure discards what
/// is in flight.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// A few words for ParallelWrapper::plan, as in "averaging every 3 iterations".
  virtual std::string describe() const = 0;

  // What the strategy needs; called before the first training, and at build() on another instance.

  /// The strategy's own state. @throws InvalidArgument for a number of workers that the strategy cannot
  /// merge.
  virtual std::vector<StrategyBlock> blocks(int /*workers*/) const { return {}; }
  /// What the training has to know of the strategy. @throws InvalidArgument as `blocks`.
  virtual StrategyTraits traits(int /*workers*/) const { return {}; }

  // A training.

  /// A `fit()` begins: replicas, merged copies and the strategy's blocks hold its start values.
  /// @throws InvalidArgument for a model that the strategy cannot train; SavedStateError if its own blocks,
  ///         which may be of a damaged file, hold impossible numbers: `fit` then names the file.
  virtual void begin(const Exchange&) {}
  /// After `begin`, unless the training continues from the end of the last `fit()` or from a checkpoint:
  /// replicas hold the user's model, and may be changed here. Called once for each participant.
  virtual void start(MergeOps&) {}
  /// The next round. Keep what you remember between calls in the strategy's blocks, so that checkpoints
  /// hold it; a resumed training continues with the saved plan. One thread calls it, before the first round
  /// and after each. It is also called on another instance, without `begin`, for the text of
  /// ParallelWrapper::plan.
  virtual RoundPlan plan(const TrainingProgress& progress) = 0;
  /// Prepares what a participant that has trained contributes, on its own thread; waits for no other.
  /// Other workers are inside their steps: only `context`, `block` and `own` of the operations may be used.
  /// `weight` is its loss normaliser since the last round; a participant with 0 counts only if all have 0.
  virtual void contribute(double /*weight*/, MergeOps&) {}
  /// Called once, by one thread, before `launch` and `land` of a round that merges, while all workers wait.
  /// Prepares what all participants use: mixing rows, the strategy's own weights.
  virtual void prepare(const Round&) {}
  /// Takes from the replicas what fragment number `fragment` sends. All scores are known to be finite, unless
  /// StrategyTraits::mergesBeforeScores.
  virtual void launch(int /*fragment*/, const Round&, MergeOps&) {}
  /// Applies what was launched.
  virtual void land(int /*fragment*/, const Round&, MergeOps&) {}
  /// If local work is a gradient: called after the merge. Now all replicas will update themselves, even after
  /// a failure, so state may be merged.
  virtual void afterReduction(const Round&, MergeOps&) {}
  /// Whether something other than what is in flight must be merged at the end of an epoch or at a stop,
  /// although no worker has trained since the last round. Called while all workers wait.
  virtual bool pending() const { return false; }

  /// About the last round, for listeners. Called once after each round, before the next one is planned.
  virtual MergeReport report() const { return {}; }
};

/// What the builder takes: a plain struct of options.
///
///     struct MyRule {
///       double rate = 1;
///       void validate() const;                   // throws InvalidArgument naming the option and its value
///       std::unique_ptr<Strategy> make() const;  // called with valid options
///     };
template <typename T>
concept StrategyOptions = std::copy_constructible<T> && requires(const T& options) {
  options.validate();
  { options.make() } -> std::convertible_to<std::unique_ptr<Strategy>>;
};

}  // namespace muster
