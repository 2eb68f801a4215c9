#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "muster/core/listeners/progress_text.h"
#include "muster/core/listeners/terminal_bar.h"

namespace muster {

/// Lines for below a progress bar, given the columns and rows that they may take; "": none.
using LinesBelow = std::function<std::string(int columns, int rows)>;

/// Shows the progress of a training loop of your own; ProgressListener does so for `fit()`.
///
/// On a terminal: a bar, redrawn in place at most ten times per second, and after the line of a short epoch,
/// and never wider than the terminal; log lines meanwhile appear above it. Elsewhere: a line every ten
/// seconds. No trace of the bar is left.
class EpochProgress {
 public:
  /// @param below  drawn with each bar; empty: nothing.
  explicit EpochProgress(std::int64_t epochs, TerminalOptions options = {}, LinesBelow below = {});

  /// @param epoch  from 1.  @param batches  of the epoch, if that is known.
  void begin(std::int64_t epoch, std::optional<std::int64_t> batches);
  /// @param batches  of the epoch so far.  @param lossSum  of the `examples` since the last call.
  void advance(std::int64_t batches, std::int64_t examples, double lossSum);
  /// Replaces the bar by one line about the epoch. @param score  of the whole epoch.
  void end(std::int64_t examples, double score);

  /// Mean over the epoch's examples so far.
  double loss() const { return lossSum_ / static_cast<double>(progress_.examples); }
  /// Since the epoch began.
  std::chrono::duration<double> elapsed() const { return bar_.now() - begin_; }

 private:
  TerminalBar bar_;
  LinesBelow below_;
  Progress progress_;
  double lossSum_ = 0;  // of the epoch so far
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace muster
