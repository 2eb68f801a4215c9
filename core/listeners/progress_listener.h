#pragma once

#include <cstdint>
#include <optional>

#include "muster/core/listeners/epoch_progress.h"
#include "muster/core/nn/listener.h"

namespace muster {

/// Options of a ProgressListener.
struct ProgressOptions {
  std::optional<std::int64_t> lastEpoch = {};  ///< of a training of several `fit()` calls; else that of each
  TerminalOptions terminal = {};
  LinesBelow below = {};  ///< more to draw with the bar
};

/// Whether `fit()`, of a model or of a ParallelWrapper, shows its progress by itself: if standard error is a
/// terminal, and no ProgressListener or WatchListener is among the listeners, it adds a ProgressListener. For
/// the whole process, from the next `fit()` of a model and the next wrapper on; thread-safe. Default true. A
/// model on a GPU that trains by itself then waits for the score of each step, as with any listener.
void showProgress(bool shown);

/// Shows the progress of `fit()`, as EpochProgress does, with one line for each finished epoch. After
/// `fit()`, also one that failed, no trace of the bar is left.
class ProgressListener final : public Listener {
 public:
  explicit ProgressListener(ProgressOptions options = {});

  void onFitStart(const FitEvent& event) override;
  void onEpochStart(const EpochEvent& event) override;
  void onMerge(const MergeEvent& event) override;
  void onEpochEnd(const EpochEvent& event) override;
  void onFitEnd(Trainer& trainer) override;

 private:
  ProgressOptions options_;
  std::optional<EpochProgress> progress_;  // while `fit()` runs
  std::optional<std::int64_t> batchesPerEpoch_;
};

}  // namespace muster
