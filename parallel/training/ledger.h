#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "muster/core/nn/training_state.h"
#include "muster/core/optim/schedule.h"
#include "muster/parallel/strategies/strategy.h"
#include "muster/parallel/training/arrivals.h"
#include "muster/parallel/training/fragment_flights.h"

// A round is a transaction over one value, the ledger: `decide` computes the ledger after the round from the
// ledger before it and from what workers and nodes contribute. See RoundTransaction.

namespace muster {

/// How a round ends.
enum class Verdict {
  Continue,
  EpochOver,
  Stop,  ///< the training stops within the epoch
  Pause  ///< the training stops as for Stop, because nodes regroup
};

/// Whether the workers end the training, whose epoch is not over.
constexpr bool endsRun(Verdict verdict) {
  return verdict == Verdict::Stop || verdict == Verdict::Pause;
}

/// Sums over the trained part of an epoch.
struct EpochSums {
  std::int64_t batches = 0, examples = 0;
  double scoreSum = 0;  ///< of scores, each times its weight
  double weight = 0;    ///< the sum of these weights
};

/// What is true of a finished round alone.
struct RoundResult {
  bool trained = false;       ///< some worker has trained in the round
  bool merging = false;       ///< some worker has trained, or the strategy has something left to merge
  std::int64_t epoch = 0;     ///< of the round
  EpochSums inEpoch;          ///< this round included
  std::int64_t examples = 0;  ///< in the round
  double weight = 0;          ///< in the round
};

/// What a ledger knows of one worker.
struct Tally {
  std::int64_t batches = 0;     ///< merged, of the epoch, since `Ledger::begun`
  std::int64_t examples = 0;    ///< merged in this `fit()`, also before the run was resumed
  Contribution unmerged = {};   ///< with arrivals: trained since the worker's last arrival
  std::int64_t untrained = -1;  ///< see Contribution
};

/// All that is true between two rounds of a training. A value without threads, tensors and clocks: the same
/// on all nodes. A run is a call of `fit()`, or a part of one between two changes of the nodes.
struct Ledger {
  std::int64_t roundsBefore = 0;          ///< finished in this `fit()` before the run was resumed
  std::int64_t rounds = 0;                ///< finished in this run
  std::int64_t merges = 0;                ///< in this run
  std::int64_t epoch = 0, iteration = 0;  ///< finished, over the life of the model
  std::int64_t epochIteration = 0;        ///< iterations finished when the epoch began
  double score = 0;                       ///< of the last round in which a worker trained
  Verdict verdict = Verdict::Continue;    ///< of the last round
  EpochPosition begun = {};               ///< where this run began the epoch
  EpochSums inEpoch = {};                 ///< what is merged of the epoch
  std::vector<Tally> workers = {};        ///< [worker]
  RoundPlan plan = {};                    ///< of the next round
  FragmentFlights flights = {};           ///< what is launched and has not landed
  /// With arrivals: landings of the epoch that were carried out before this run.
  std::int64_t landingsBefore = 0;
  std::optional<Arrivals> arrivals = {};  ///< if the strategy has arrivals
};

/// The ledger of a training that begins at a position of an epoch. @param iteration, epoch  finished.
Ledger ledgerAt(const EpochPosition& position, std::int64_t iteration, std::int64_t epoch, int workers);
/// Whether a ledger that was read from a checkpoint (see resumption.h) holds the plan of the next round.
bool isPlanned(const Ledger& saved);
/// Completes a ledger by one that was read from a checkpoint, of which `ledgerAt` holds the rest.
void resume(Ledger& ledger, const Ledger& saved);
/// Lets workers arrive as planned. Call it once, after `resume`. @throws InvalidArgument for an impossible
/// plan.
void setArrivals(Ledger& ledger, const ArrivalPlan& plan, const Schedule& learningRate);

/// Landings of the epoch that a resumed training has to repeat; 0 after the end of an epoch or a stop, when
/// all workers continue from the same state.
std::int64_t landings(const Ledger& ledger);
/// Whether something was launched and has not landed, or was trained and not merged.
bool anyInFlight(const Ledger& ledger);
/// The worker's iterations in the next round, or an upper bound. @param alone  workers do not wait for each
/// other at landings.
std::int64_t iterations(const Ledger& ledger, int worker, bool alone);
/// [worker] Examples trained in this `fit()`, merged or not.
std::vector<std::int64_t> examples(const Ledger& ledger);
/// The trained part of the epoch.
EpochPosition position(const Ledger& ledger);
/// What a strategy plans the next round by.
TrainingProgress progress(const Ledger& ledger, const Schedule& learningRate);

/// What nodes decide together, in addition to contributions. Each is true if it is so on some node.
struct Votes {
  bool stop = false;      ///< the training was asked to stop
  bool pause = false;     ///< nodes regroup
  bool listens = false;   ///< listeners are called in every round
  bool measures = false;  ///< a listener reads the divergence of the replicas
};

/// What else the end of a round depends on.
struct RoundFacts {
  bool met = true;       ///< all workers wait; false: one has completed a landing while others train
  bool pending = false;  ///< Strategy::pending
};

/// What was decided at the end of a round.
struct Decision {
  RoundResult round;
  std::vector<double> weights;  ///< [worker] of the merge; 0 for a worker that is not merged
  bool scored = false;          ///< scores are added: none is late, or `addScores` was called
  bool measured = false;        ///< Round::measured
  Ledger after;                 ///< the ledger if the round is committed; the plan is that of this round

  /// The round as the strategy gets it. Valid until the next decision.
  Round call() const;
};

/// Decides how a round ends. Pure: the same arguments give the same decision on every node. Allocates only if
/// `into` is new.
/// @param contributions  [worker] of all nodes.
/// @throws InvalidArgument if weights overflow, or for a plan that launches a fragment again before it lands.
void decide(const Ledger& now, std::span<const Contribution> contributions, const Votes& votes,
            const RoundFacts& facts, Decision& into);
/// Adds the scores, if some were late. @param contributions  [worker] now with all scores.
void addScores(Decision& decision, std::span<const Contribution> contributions);
/// Adds the penalty of the updates that follow a merge of gradients, the same for all workers.
void addPenalty(Decision& decision, double penalty);
/// Whether the divergence is measured at this merge of the run, from 1, if a listener reads it: at the first
/// 64, then at every second one up to 128, at every fourth up to 256, and so on.
bool isMeasured(std::int64_t merge);

}  // namespace muster
