#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/core/base/fields.h"
#include "muster/parallel/strategies/strategy.h"

namespace muster {

/// The quadratic synchronisation rule: a round has max(every, floor((alpha / learning rate)^power))
/// iterations, by the learning rate after the merge. (A result that rounding puts just below a whole number
/// counts as that.) While the learning rate warms up these rounds are too long: set Period::until. Source:
/// Gu et al. 2024, "A quadratic synchronization rule for distributed deep learning".
struct QuadraticSynchronisation {
  double alpha = 0;  ///< at least 0. 0: always `every`
  double power = 2;  ///< above 0; 3 is the paper's cubic rule

  bool operator==(const QuadraticSynchronisation&) const = default;
};

/// AdaComm: begins with rounds of `every` iterations, and shortens them as the score F falls. After each
/// `interval` rounds they have ceil(sqrt(F / F0) * every) iterations, where F is the mean score of these
/// rounds and F0 that of the first round. If this is not less than before, the period is multiplied by
/// `shrink`. If the learning rate changes, the period is multiplied by sqrt(first rate / rate). Scores
/// must be positive. Source: Wang and Joshi 2019, "Adaptive communication strategies to achieve the best
/// error-runtime trade-off in local-update SGD". The paper's intervals are minutes; ours are rounds, so that
/// every run gives the same bits.
struct AdaComm {
  std::int64_t interval = 10;  ///< rounds, 1 to 2^40
  double shrink = 0.5;         ///< in (0, 1]. 1: the period also grows with the score

  bool operator==(const AdaComm&) const = default;
};

/// When replicas are merged: how many iterations a round has. A whole number is a period, too, so
/// `Averaging{.frequency = 3}` merges every 3 iterations. A round also ends with its epoch and at a stop.
struct Period {
  /// The same number of iterations in every round.
  Period(std::int64_t iterations = 1)
      : every(iterations) {}  // NOLINT(google-explicit-constructor): see above
  static Period fixed(std::int64_t iterations) { return iterations; }
  /// Merges every iteration until the model has finished this many iterations, then by the period `then`.
  /// Source: Lin et al. 2020, "Don't use large mini-batches, use local SGD" (post-local SGD).
  static Period postLocal(std::int64_t iterations, Period then);
  static Period qsr(std::int64_t least, QuadraticSynchronisation options);
  static Period adaComm(std::int64_t first, AdaComm options = {});

  std::int64_t every;  ///< iterations: always, or with QSR at least, or with AdaComm at first. 1 to 2^40
  std::variant<std::monostate, QuadraticSynchronisation, AdaComm> adapted = {};
  /// Until the model has finished `until` iterations and `untilEpoch` epochs a round has `first` iterations,
  /// as in post-local SGD or while the learning rate warms up.
  std::int64_t until = 0;
  std::int64_t untilEpoch = 0;
  std::int64_t first = 1;

  bool operator==(const Period&) const = default;
  bool constant() const { return adapted.index() == 0; }
  /// Iterations of a round that begins now, from iteration, epoch and learning rate. With AdaComm, which also
  /// needs the score: `every`.
  std::int64_t at(const TrainingProgress& now) const;
  /// @param rule  begins the message, as in "gossip".
  /// @throws InvalidArgument naming the option out of range as `fields` does: "every", "period.until".
  void validate(std::string_view rule) const;
  /// As in "every 3 iterations".
  std::string describe() const;
  /// Whether `first` still applies.
  bool inFirstPart(const TrainingProgress& now) const {
    return now.iteration < until || now.epoch < untilEpoch;
  }
  /// Visits `every`, and the others inside "period".
  void fields(Fields& f);
};

/// A strategy's period in a training. The strategy adds `declare` to its blocks and calls `begin` and
/// `iterations`; so AdaComm's state is saved and resumed with the model, and starts again after a
/// failure or with another number of workers.
class PeriodState {
 public:
  explicit PeriodState(const Period& period) : period_(period) {}

  /// Adds the block that the period needs, if any.
  void declare(std::vector<StrategyBlock>& blocks) const;
  void begin(const Exchange& exchange);
  /// Iterations of the next round, right after a merge. Before `begin`: `Period::every`.
  /// Called for each merge, by one thread, with scores of the rounds since.
  std::int64_t iterations(const TrainingProgress& progress);
  /// Call this instead of `iterations` after a round without a merge (a fragment was launched and did not
  /// land): the score of the round counts in the next merge.
  void passRound(const TrainingProgress& progress);
  /// What listeners get (MergeReport::values): "period", the iterations of the round, as they were chosen.
  MergeValue value() const { return value_; }
  std::span<const MergeValue> values() const { return {&value_, 1}; }

 private:
  std::int64_t adaptedIterations(const AdaComm&, const TrainingProgress&) const;

  const Period period_;
  MergeValue value_{"period", 0};
  bool begun_ = false;
  Tensor memory_;  // state of AdaComm; see period.cpp
};

}  // namespace muster
