#pragma once

#include <cstdint>

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
