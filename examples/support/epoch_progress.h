#pragma once

#include <chrono>
#include <cstdint>

#include "muster/core/listeners/progress_text.h"

namespace example {

/// Shows on standard error how far an epoch has come, for a training loop of one's own: on a terminal a bar,
/// which leaves no trace, elsewhere a line every ten seconds.
class EpochProgress {
 public:
  /// @param epoch  from 1.
  EpochProgress(std::int64_t epoch, std::int64_t epochs, std::int64_t batches);
  ~EpochProgress();
  EpochProgress(const EpochProgress&) = delete;
  EpochProgress& operator=(const EpochProgress&) = delete;

  /// After each batch. @param lossSum  of its examples.
  void add(std::int64_t examples, double lossSum);

  /// Mean over the examples so far.
  double loss() const { return lossSum_ / static_cast<double>(progress_.examples); }
  /// Since the epoch began.
  std::chrono::duration<double> elapsed() const { return Clock::now() - begin_; }

 private:
  using Clock = std::chrono::steady_clock;
  void show();

  muster::Progress progress_;
  double lossSum_ = 0;
  bool terminal_;
  Clock::time_point begin_ = Clock::now(), lastShown_ = begin_;
};

}  // namespace example
