#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "muster/core/listeners/progress_text.h"
#include "muster/core/nn/listener.h"

namespace muster {

/// Where and how progress is shown. Whatever is empty is that of standard error.
struct ProgressOptions {
  std::optional<bool> terminal = {};                 ///< whether a bar can be drawn
  std::function<void(std::string_view)> write = {};  ///< takes bytes as they are
  std::function<int()> columns = {};                 ///< the terminal's width
  std::function<std::chrono::steady_clock::time_point()> now = {};
  std::optional<std::int64_t> lastEpoch = {};  ///< of a training of several `fit()` calls; else that of each
};

/// Shows how far a training has come.
///
/// On a terminal: a bar, redrawn in place at most ten times a second and never wider than the terminal,
/// which gives way to one line an epoch; log lines meanwhile appear above it. Elsewhere: one line an epoch,
/// and one every ten seconds. After `fit()`, also one that failed, no trace of the bar is left.
class ProgressListener final : public Listener {
 public:
  explicit ProgressListener(ProgressOptions options = {});
  ~ProgressListener() override;

  void onFitStart(const FitEvent& event) override;
  void onEpochStart(const EpochEvent& event) override;
  void onMerge(const MergeEvent& event) override;
  void onEpochEnd(const EpochEvent& event) override;
  void onFitEnd(Trainer& trainer) override;

 private:
  using Clock = std::chrono::steady_clock;
  class Screen;

  Clock::time_point now() const { return options_.now ? options_.now() : Clock::now(); }

  ProgressOptions options_;
  std::shared_ptr<Screen> screen_;  // the log's sink holds it too
  Progress progress_;
  double scoreSum_ = 0;  // of the epoch so far, each score times its examples
  Clock::time_point epochBegin_;
  Clock::time_point lastShown_;
};

}  // namespace muster
