#pragma once

#include <cstdint>

namespace muster {

/// How a round ends for all workers, or for one worker that leaves it alone.
enum class Verdict {
  Continue,
  EpochOver,
  Stop,   ///< the training stops within the epoch
  Pause,  ///< the training stops as for Stop, because nodes regroup
  Aborted,
  Resumed  ///< the worker continues after a landing, without the others
};

/// Whether the workers end the training, whose epoch is not over.
constexpr bool endsRun(Verdict verdict) {
  return verdict == Verdict::Stop || verdict == Verdict::Pause;
}

/// How a round has ended for one worker, and what it does next. A value: other workers may end further rounds
/// before the worker reads it.
struct RoundEnd {
  Verdict verdict = Verdict::Aborted;
  std::int64_t iteration = 0, epoch = 0;  ///< finished
  std::int64_t iterations = 0;            ///< the worker's in the next round, or an upper bound
  bool merged = true;                     ///< the worker's contribution was merged
};

/// Sums over the trained part of an epoch.
struct EpochSums {
  std::int64_t batches = 0, examples = 0;
  double scoreSum = 0;  ///< of scores, each times its weight
  double weight = 0;    ///< the sum of these weights
};

/// A finished round, for listeners.
struct RoundResult {
  Verdict verdict = Verdict::Continue;
  bool trained = false;        ///< some worker has trained in the round
  bool merging = false;        ///< some worker has trained, or the strategy has something left to merge
  std::int64_t epoch = 0;      ///< of the round
  std::int64_t iteration = 0;  ///< iterations finished
  EpochSums inEpoch;           ///< this round included
  std::int64_t examples = 0;   ///< in the round
  double weight = 0;           ///< in the round
  double score = 0;            ///< of the round; if nothing was trained, of the round before
};

}  // namespace muster
