#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "muster/core/nn/model.h"
#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/strategies/any_strategy.h"
#include "muster/parallel/training/contribution.h"

namespace muster {

/// Where the rounds of a `fit()` are, between two of them.
struct RoundsState {
  std::int64_t rounds = 0;      ///< finished
  RoundPlan plan = {};          ///< of the next one
  FragmentSet inFlight = {};    ///< launched and not landed
  std::vector<double> weights;  ///< see FragmentFlights
  // Of a strategy with arrivals, within an epoch:
  std::int64_t landings = 0;                ///< since the epoch began, or was resumed after a stop; else 0
  std::int64_t epochIteration = 0;          ///< iterations finished then
  std::vector<Contribution> unmerged = {};  ///< [worker] trained and not merged

  /// Whether workers have something that is launched and has not landed, or was trained and not merged.
  bool anyInFlight() const { return !inFlight.empty() || landings > 0; }
};

/// What a `fit()` goes on from: nothing, or the training state of the user's model.
struct Resumption {
  EpochPosition position = {};
  /// Whether rule and number of workers are those of the checkpoint. Otherwise each worker starts anew from
  /// the merged copy.
  bool replicas = false;
  /// With `replicas`; but at the start of an epoch, or after a stop, a strategy with arrivals starts anew.
  std::optional<RoundsState> rounds = {};
  /// [worker] trained by the checkpoint's `fit()`; with `replicas`.
  std::vector<std::int64_t> examples = {};
  /// What merged copies and replicas hold, if the rule is that of the checkpoint.
  TrainingState values = {};
  bool any = false;
};

/// A rule as a checkpoint tells it from others.
struct RuleText {
  std::string description;
  std::string options;  ///< all that count, as in "every=3,momentum=0.9"; "" if the struct has no `fields`
};
/// The text of a strategy.
RuleText ruleText(AnyStrategy strategy);

/// Reads the training state of the user's model. What cannot be used is said in a log line.
/// @throws InvalidArgument for a state that holds impossible numbers.
Resumption resumptionOf(Model& model, const DataSetIterator& data, const AnyStrategy& strategy, int workers);

/// Adds rounds and rule to a training state. @param examples  [worker] trained since `fit()` began.
void addRounds(TrainingState& state, const RoundsState& rounds, const RuleText& rule,
               std::span<const std::int64_t> examples);

/// Adds the rule alone: each worker is to start from the merged copy.
void addRule(TrainingState& state, const RuleText& rule);

/// Adds what the user's model does not hold: each block's merged copy, where it is another value, and the
/// replicas', where they are not those of the merged copy. While no worker runs.
/// @param ofModel  [block] what the user's model was filled from.
/// @param mergedCopiesCount  false with LocalWork::Gradient: the replicas are the truth.
void addValues(TrainingState& state, const Exchange& exchange, std::span<const Tensor> ofModel,
               bool mergedCopiesCount);
/// Fills merged copies and replicas from there, once they hold the user's model. While no worker runs.
/// @param replicas  false: these take the merged copies.
void takeValues(const TrainingState& state, Exchange& exchange, bool replicas);

}  // namespace muster
