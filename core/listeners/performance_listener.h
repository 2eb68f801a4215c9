#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "muster/core/listeners/every.h"
#include "muster/core/listeners/line_sink.h"
#include "muster/core/listeners/performance_report.h"

namespace muster {

/// 0 turns an interval off.
struct PerformanceOptions {
  std::int64_t everyIterations = 0;
  std::chrono::nanoseconds every{0};
  bool tableAtEnd = true;  ///< a table of all workers when `fit()` ends
  bool overNodes = false;  ///< other nodes train, too: samples per second count theirs
  LineSink sink = {};
  /// The clock; empty: the steady clock.
  std::function<std::chrono::steady_clock::time_point()> now = {};
};

/// Measures samples per second, and the shares of the workers' time spent computing, waiting for data,
/// waiting for each other and merging. A line covers the time since the last one, the final table the whole
/// `fit()`.
///
/// Wall time runs from the start to the end of each epoch. To leave out what other listeners do between
/// epochs (evaluate, save), put this listener first in the list.
class PerformanceListener final : public Listener {
 public:
  using Clock = std::chrono::steady_clock;

  /// @throws InvalidArgument for negative intervals.
  explicit PerformanceListener(PerformanceOptions options = {});

  void onFitStart(const FitEvent& event) override;
  void onEpochStart(const EpochEvent& event) override;
  void onMerge(const MergeEvent& event) override;
  void onEpochEnd(const EpochEvent& event) override;
  void onFitEnd(Trainer& trainer) override;

  /// The `fit()` in progress at the end of its last epoch, or the last `fit()`.
  const PerformanceReport& report() const { return report_; }

 private:
  Clock::time_point now() const { return options_.now ? options_.now() : Clock::now(); }
  void closeEpoch(Trainer& trainer);
  void addOthers(PerformanceReport& report, std::int64_t merged) const;

  PerformanceOptions options_;
  Every everyIterations_;
  PerformanceReport report_;
  std::chrono::nanoseconds training_{0};         // of finished epochs
  std::optional<Clock::time_point> epochBegin_;  // while an epoch runs
  Clock::time_point lastLine_;
  std::vector<WorkerTimes> atLastLine_;
  std::int64_t merged_ = 0, mergedAtLastLine_ = 0;  // examples of all nodes
};

}  // namespace muster
