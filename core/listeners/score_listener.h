#pragma once

#include "muster/core/listeners/every.h"
#include "muster/core/listeners/line_sink.h"
#include "muster/core/nn/listener.h"

namespace muster {

/// Writes the score every N iterations, as in `iteration 30, epoch 1: score 0.123456`: the mean over the
/// examples since the last line. Epochs count from 1 here.
class ScoreListener final : public Listener {
 public:
  /// @throws InvalidArgument for everyIterations < 1.
  explicit ScoreListener(std::int64_t everyIterations = 10, LineSink sink = {});

  void onEpochStart(const EpochEvent& event) override;
  void onMerge(const MergeEvent& event) override;

 private:
  Every every_;
  LineSink sink_;
  double scoreSum_ = 0;  // since the last line, each score times its examples
  std::int64_t examples_ = 0;
};

}  // namespace muster
