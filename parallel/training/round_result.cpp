#include "muster/parallel/training/round_result.h"

#include <algorithm>
#include <cmath>

#include "muster/core/base/error.h"

namespace muster {

RoundResult RoundResult::next(std::int64_t epochOfNext) const {
  RoundResult next{.epoch = epochOfNext, .iteration = iteration, .score = score, .merges = merges};
  if (verdict == Verdict::EpochOver) return next;
  next.batchesInEpoch = batchesInEpoch;
  next.examplesInEpoch = examplesInEpoch;
  next.scoreSumInEpoch = scoreSumInEpoch;
  next.weightInEpoch = weightInEpoch;
  return next;
}

namespace {
bool isMerged(std::span<const Arrival> landing, std::size_t worker) {
  return landing.empty() || landing[worker].arrives;
}
}  // namespace

void RoundResult::add(std::span<const Contribution> contributions, std::span<const Arrival> landing,
                      std::span<double> weights) {
  std::int64_t batches = 0;
  for (std::size_t w = 0; w < contributions.size(); ++w) {
    if (!isMerged(landing, w)) continue;
    const Contribution& c = contributions[w];
    weight += c.weight;
    batches += c.batches;
    examples += c.examples;
    iteration = std::max(iteration, c.iteration);
  }
  require(std::isfinite(weight), "the weights of the workers' batches add up to {}", weight);
  // Steps on fully masked examples still change the parameters (decay, momentum). If there are no others,
  // the number of batches is the weight. Among arrivals they have no weight: others land without them.
  for (std::size_t w = 0; w < contributions.size(); ++w) {
    const Contribution& c = contributions[w];
    weights[w] = !isMerged(landing, w)            ? 0
                 : weight > 0 || !landing.empty() ? c.weight
                                                  : static_cast<double>(c.batches);
  }
  trained = batches > 0;
  batchesInEpoch += batches;
  examplesInEpoch += examples;
  weightInEpoch += weight;
}

void RoundResult::addScores(std::span<const Contribution> contributions, std::span<const Arrival> landing) {
  double scoreSum = 0, plainScoreSum = 0;
  std::int64_t batches = 0;
  for (std::size_t w = 0; w < contributions.size(); ++w) {
    if (!isMerged(landing, w)) continue;
    scoreSum += contributions[w].scoreSum;
    plainScoreSum += contributions[w].plainScoreSum;
    batches += contributions[w].batches;
  }
  if (trained) score = weight > 0 ? scoreSum / weight : plainScoreSum / static_cast<double>(batches);
  scoreSumInEpoch += scoreSum;
}

}  // namespace muster
