#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "muster/core/io/model_file.h"
#include "muster/core/listeners/detail/best_file.h"
#include "muster/core/listeners/detail/best_state.h"
#include "muster/core/listeners/line_sink.h"
#include "muster/core/listeners/model_writer.h"
#include "muster/core/listeners/monitored.h"
#include "muster/core/listeners/node_listener.h"
#include "muster/core/nn/model.h"

namespace muster {

/// Options of EarlyStopping.
struct EarlyStoppingOptions {
  /// Data for monitors on validation data; null otherwise. Must outlive the listener.
  DataSetIterator* validation = nullptr;
  Monitor monitor = Monitor::Accuracy;
  std::optional<MonitorMode> mode = {};          ///< which of two values is better; empty: the monitor's
  std::function<double(Trainer&)> measure = {};  ///< of Monitor::Own, at the ends of epochs
  std::int64_t everyEpochs = 1;                  ///< evaluates after each multiple of this many epochs
  std::int64_t patience = 5;  ///< stops after this many epochs without an improvement; 0: no limit
  double minImprovement = 0;  ///< a smaller or equal change does not count as an improvement
  /// Stops at the first merge after this long; 0: no limit. A resumed training counts the time up to its
  /// checkpoint, too.
  std::chrono::nanoseconds maxTime{0};
  bool restoreBest = false;  ///< gives the model its best state back when `fit()` ends
  /// Receives the best model so far, a Network's model file, completely or not at all; empty: none.
  std::filesystem::path bestFile = {};
  /// Whether the model may replace that file, asked on node 0 before it is written; empty: always. If not,
  /// the file stays until a better model may replace it. For checks beyond the monitored value.
  std::function<bool(Trainer&)> acceptBest = {};
  ModelNotes notes = {};  ///< in that file
  LineSink sink = {};
  /// The clock; empty: the steady clock.
  std::function<std::chrono::steady_clock::time_point()> now = {};
};

/// Why early stopping has ended a training.
enum class StopReason {
  None,           ///< it has not
  NoImprovement,  ///< for `patience` epochs
  Time,           ///< `maxTime` has passed
  NotANumber      ///< the monitored value is NaN or infinite
};

/// Ends a training that no longer improves, that takes too long, or whose monitored value is not a number.
/// Evaluates the merged model every N epochs, with all workers, and calls `stopFit()`. Each `fit()` starts
/// counting anew, unless it resumes a checkpoint of a training with this listener. What that continues, the
/// state that `restoreBest` gives back, and `bestFile`: examples/docs/checkpoints.md, "Stop in time".
///
/// `restoreBest` needs CPU memory for one model, allocated at the first copy and freed at the end; another
/// thread writes `bestFile` from a second copy, for which `onFitEnd` waits. With several nodes all use the
/// same value, and `measure` must return the same on all of them; node 0 reads the clock, and writes lines
/// and `bestFile`. The validation iterator must not be the training's: a ParallelWrapper already reads the
/// next epoch while listeners evaluate.
///
/// Source: Prechelt 1998, "Early stopping - but when?". Its criterion UP counts successive deteriorations;
/// patience counts epochs since the last improvement.
class EarlyStopping final : public NodeListener {
 public:
  /// The monitor's value after an epoch.
  struct Result {
    std::int64_t epoch = 0;  ///< epochs that the model had finished
    double value = 0;        ///< of the monitor
  };

  /// @throws InvalidArgument as Monitored::validate; for everyEpochs < 1, a negative patience or maxTime,
  ///         both of them 0 without restoreBest or bestFile, or a minImprovement that is negative or not
  ///         finite.
  explicit EarlyStopping(EarlyStoppingOptions options);

  std::string describe() const override;
  /// @throws InvalidArgument as Monitored::requireFits, or for a bestFile with a model that is not a Network;
  ///         SavedStateError for a state
  ///         with impossible numbers, FileError if it was loaded from a file; FileError for a bestFile that
  ///         cannot be written or, when resumed, read.
  void onFitStart(const FitEvent& event) override;
  void onMerge(const MergeEvent& event) override;
  /// @throws FileError if bestFile could not be written, this time or the last; it then keeps
  ///         its old content.
  void onEpochEnd(const EpochEvent& event) override;
  /// @throws FileError likewise.
  void onFitEnd(Trainer& trainer) override;

  /// The best result of the last `fit()` and of the training that it resumed; empty if no epoch was
  /// evaluated.
  const std::optional<Result>& best() const { return best_; }
  /// Why it stopped the last `fit()`.
  StopReason stopped() const { return stopped_; }
  /// The reason in words: `the validation accuracy has not improved for 5 epochs; the best was 0.9834 after
  /// epoch 7`.
  /// Empty if it did not stop the last `fit()`.
  const std::string& reason() const { return reason_; }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point now() const { return options_.now ? options_.now() : Clock::now(); }
  void stop(Trainer& trainer, StopReason stopped, std::int64_t epoch, const std::string& why);
  void stopIfTooLate(Trainer& trainer, std::int64_t epoch);
  void stopIfNoImprovement(Trainer& trainer, std::int64_t epoch);
  /// Continues from the model's listener state, if it is known there.
  void resume(Model& model);
  void readKept(Model& model);
  /// Keeps numbers and best state with the model.
  void remember(Model& model);
  void rememberTime();
  bool accepts(Trainer& trainer) const;
  void writeBest(Trainer& trainer);

  const EarlyStoppingOptions options_;
  const Monitored monitored_;
  const std::string name_, bestName_;  // in Model::listenerState: of numbers_; prefix of the best state
  detail::BestFile file_;
  std::optional<Result> best_, lastImprovement_;
  StopReason stopped_ = StopReason::None;
  std::string reason_;
  Clock::time_point start_;
  Tensor numbers_;          // of a StoppingRecord
  detail::BestState kept_;  // empty but in `fit()`
  ModelWriter writer_;      // likewise
};

}  // namespace muster
