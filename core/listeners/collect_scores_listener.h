#pragma once

#include <cstdint>
#include <vector>

#include "muster/core/nn/listener.h"

namespace muster {

/// Keeps the scores of all merges and epochs, for scripts and tests.
class CollectScoresListener final : public Listener {
 public:
  /// A score and its place in the training.
  struct Score {
    std::int64_t epoch = 0;      ///< from 0
    std::int64_t iteration = 0;  ///< iterations finished
    std::int64_t examples = 0;   ///< the score is the mean over these
    double score = 0;
    bool operator==(const Score&) const = default;
  };

  void onMerge(const MergeEvent& event) override {
    merges_.push_back({event.epoch, event.iteration, event.examples, event.score});
  }
  void onEpochEnd(const EpochEvent& event) override {
    epochs_.push_back({event.epoch, event.iteration, event.examples, event.score});
  }

  const std::vector<Score>& merges() const { return merges_; }
  const std::vector<Score>& epochs() const { return epochs_; }

 private:
  std::vector<Score> merges_;
  std::vector<Score> epochs_;
};

}  // namespace muster
