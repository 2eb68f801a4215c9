#pragma once

#include <cstdint>
#include <span>

#include "muster/parallel/strategies/arrivals.h"
#include "muster/parallel/training/contribution.h"

namespace muster {

/// How a round ends for all workers, or for one worker that leaves it alone.
enum class Verdict {
  Continue,
  EpochOver,
  Stop,
  Aborted,
  WentOn  ///< the worker continued after a landing, without the others
};

/// How a round has ended for one worker, which may continue while others land.
struct RoundEnd {
  Verdict verdict = Verdict::Aborted;
  std::int64_t iteration = 0, epoch = 0;  ///< finished; not set if it was aborted or the worker left alone
};

/// A finished round.
struct RoundResult {
  Verdict verdict = Verdict::Continue;
  bool trained = false;  ///< some worker has trained in the round
  bool merging = false;  ///< some worker has trained, or the strategy has something left to merge
  bool joinedByCoordinator = false;
  std::int64_t epoch = 0;
  std::int64_t iteration = 0;  ///< iterations finished
  std::int64_t batchesInEpoch = 0, examplesInEpoch = 0;
  double scoreSumInEpoch = 0, weightInEpoch = 0;
  std::int64_t examples = 0;  ///< in the round
  double weight = 0;          ///< in the round
  double score = 0;           ///< of the round; if nothing was trained, of the previous round
  std::int64_t merges = 0;    ///< in this run, this one included

  RoundEnd end() const { return {verdict, iteration, epoch + (verdict == Verdict::EpochOver ? 1 : 0)}; }
  /// The round after this one, before anything is added.
  RoundResult next(std::int64_t epochOfNext) const;
  /// Adds the workers' contributions in worker order, except their scores.
  /// @param landing  [worker] which workers are merged; empty: all.
  /// @param weights  [worker] receives the weights of the merge, 0 for a worker that is not merged.
  void add(std::span<const Contribution> contributions, std::span<const Arrival> landing,
           std::span<double> weights);
  /// After `add`, with the same arguments: adds the scores.
  void addScores(std::span<const Contribution> contributions, std::span<const Arrival> landing);
};

}  // namespace muster
