#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "muster/core/listeners/progress_listener.h"

namespace muster {

/// How WatchListener draws.
struct WatchListenerOptions {
  std::optional<std::int64_t> lastEpoch = {};  ///< as of ProgressOptions
  TerminalOptions terminal = {};
  /// Whether to draw in colours; by default unless the environment has NO_COLOR.
  std::optional<bool> colour = {};
  /// Whether the curve is of braille dots, otherwise of ASCII; by default in an environment of UTF-8.
  std::optional<bool> braille = {};
};

/// Draws a training in the terminal: the bar of ProgressListener, below it a row for each worker with its
/// score, its samples per second and what it spends its time on, and the curve of the merged scores. A
/// window that is too small shows the first of these. Without a terminal it writes ProgressListener's
/// lines.
///
///     auto watch = std::make_shared<WatchListener>();
///     ParallelWrapper::Builder(model).listeners({watch, watch->workers()})
///
/// The rows show the last second; the curve shows all scores since the listener was created, over several
/// `fit()` calls, too. Watching changes no bit of the training.
class WatchListener final : public Listener {
 public:
  /// Draws from the next `fit()` on.
  explicit WatchListener(WatchListenerOptions options = {});
  ~WatchListener() override;

  /// A second listener for the list, which gives the rows their scores. On a GPU each step then waits for the
  /// score of the last one.
  std::shared_ptr<Listener> workers();

  void onFitStart(const FitEvent& event) override;
  void onEpochStart(const EpochEvent& event) override;
  void onMerge(const MergeEvent& event) override;
  void onEpochEnd(const EpochEvent& event) override;
  void onFitEnd(Trainer& trainer) override;

 private:
  struct State;
  class Workers;
  std::shared_ptr<State> state_;
  ProgressListener progress_;
};

}  // namespace muster
