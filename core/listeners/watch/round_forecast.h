#pragma once

#include <cstdint>
#include <optional>

#include "muster/core/nn/listener.h"

namespace muster {

/// Predicts which rounds are the last ones of an epoch and of a `fit()`, from the batches of the round before,
/// so that a listener can copy the parameters before such a round.
class RoundForecast {
 public:
  /// Whether the next round is the last one of its epoch, and of the `fit()`.
  struct Next {
    bool endsEpoch = false, endsFit = false;
  };

  void fitStart(const FitEvent& event) {
    lastEpoch_ = event.firstEpoch + event.epochs - 1;
    batchesPerEpoch_ = event.batchesPerEpoch;
    before_ = 0;
  }

  /// The round after the one that this merge ends. False if it is not known, as without `batchesPerEpoch`.
  Next after(const MergeEvent& event) {
    if (!batchesPerEpoch_) return {};
    const std::int64_t inRound = event.batchesInEpoch - before_;
    const bool over = event.batchesInEpoch >= *batchesPerEpoch_;
    const std::int64_t epoch = event.epoch + (over ? 1 : 0);
    before_ = over ? 0 : event.batchesInEpoch;
    const bool ends = epoch <= lastEpoch_ && before_ + inRound >= *batchesPerEpoch_;
    return {.endsEpoch = ends, .endsFit = ends && epoch == lastEpoch_};
  }

 private:
  std::int64_t lastEpoch_ = 0;
  std::optional<std::int64_t> batchesPerEpoch_;
  std::int64_t before_ = 0;  // batches of the epoch before the round
};

}  // namespace muster
