#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "muster/core/listeners/progress_text.h"
#include "muster/core/nn/listener.h"

namespace muster {

/// Where and how progress is shown. An empty member is that of standard error.
struct ProgressOptions {
  std::optional<bool> terminal = {};                 ///< whether to draw a bar
  std::function<void(std::string_view)> write = {};  ///< receives bytes unchanged
  std::function<int()> columns = {};                 ///< the terminal's width
  std::function<std::chrono::steady_clock::time_point()> now = {};
  std::optional<std::int64_t> lastEpoch =
      {};  ///< of a training of several `fit()` calls; empty: that of each call
};

/// Shows the progress of a training.
///
/// On a terminal: a bar, redrawn at most ten times a second and never wider than the terminal; at the end of
/// each epoch one line replaces it. Log lines appear above the bar. Elsewhere: one line an epoch, and one
/// every ten seconds. After `fit()`, also a failed one, the bar is erased.
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
  std::shared_ptr<Screen> screen_;  // the log's sink shares it
  Progress progress_;
  double scoreSum_ = 0;  // in this epoch, each score times its examples
  Clock::time_point epochBegin_;
  Clock::time_point lastShown_;
};

}  // namespace muster
