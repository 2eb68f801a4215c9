#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "muster/core/io/checkpoint_files.h"
#include "muster/core/io/model_file.h"
#include "muster/core/listeners/checkpoint_lock.h"
#include "muster/core/listeners/detail/kept_checkpoints.h"
#include "muster/core/listeners/every.h"
#include "muster/core/listeners/model_writer.h"
#include "muster/core/listeners/monitored.h"
#include "muster/core/nn/state_recorder.h"

namespace muster {

/// When and where checkpoints are saved. 0 turns an interval off; at least one is on.
struct CheckpointOptions {
  std::filesystem::path directory = {};  ///< created if it does not exist
  std::int64_t everyEpochs = 1;
  std::int64_t everyIterations = 0;   ///< at the next merge
  std::chrono::nanoseconds every{0};  ///< likewise, by the clock
  std::int64_t keepLast = 0;          ///< 0: all
  /// Also saves and keeps a checkpoint at the end of every N-th epoch, in addition to `everyEpochs` and
  /// `keepLast`; 0: none.
  std::int64_t keepEveryEpochs = 0;
  /// If given, it is evaluated at the end of every epoch, and the best state is also kept, as
  /// `<baseName>-best.safetensors`.
  std::optional<Monitored> best = {};
  /// Whether a state may replace the best one, asked before it is written; empty: always. For checks beyond
  /// the monitored value.
  std::function<bool(Trainer&)> acceptBest = {};
  std::string baseName = "checkpoint";
  /// The checkpoints in the directory are of this training, which is resumed. The listener may then delete
  /// them, too, by `keepLast`. Without it, onFitStart refuses a directory that holds checkpoints of another
  /// training.
  bool resumed = false;
  /// While `fit` runs, no other training may write checkpoints of this name into the directory. False for
  /// elastic nodes: the old node may still hold the lock. Make the listener before the training begins: files
  /// that appear later are then of nodes of this training.
  bool exclusive = true;
  ModelNotes notes = {};  ///< in each file
  /// Writes a model that is not a Network, on the thread that called `fit()`.
  std::function<void(Model&, const std::filesystem::path&)> save = {};
  /// The clock; empty: the steady clock.
  std::function<std::chrono::steady_clock::time_point()> now = {};
};

/// Saves checkpoints: model files with all that the training needs to continue with the same bits
/// (see TrainingState). At the ends of epochs they are
/// `<directory>/<baseName>-epoch-0003.safetensors` (the number of epochs that the model has
/// finished), and after merges within an epoch, or at a stop,
/// `<baseName>-epoch-0003-iteration-00001234.safetensors`. Keeps the last K, every M-th epoch's and
/// the best. Deletes only files that it has written itself or, with `resumed`, found in the directory, after
/// a newer one is complete.
///
/// The training waits until the state is copied; another thread writes the copy, of the best checkpoint, too.
/// If a checkpoint within an epoch is due while a file is still being written, or while the training cannot
/// be resumed (Trainer::trainingState is empty), it waits for the next merge. One that is due at an epoch's
/// last merge is saved at the epoch's end. `onFitEnd` waits for the files.
///
/// It is called after the other listeners (StateRecorder), so that checkpoints hold what they keep of the
/// same merge or epoch.
class CheckpointListener final : public StateRecorder {
 public:
  using Clock = std::chrono::steady_clock;

  /// @throws InvalidArgument for negative numbers, no interval, or a baseName that is empty or contains a
  ///         slash; FileError for a directory that cannot be read, unless `exclusive`.
  explicit CheckpointListener(CheckpointOptions options);

  // Each throws FileError if a file could not be written, also the last one.

  /// Removes what a killed process has left of files that it was writing.
  /// @throws FileError if the directory cannot be created, or if another training writes checkpoints of this
  ///         name into it, of this process or another one, or if a directory, a pipe or the like has the name
  ///         of a later checkpoint; InvalidArgument for a model that it cannot save.
  ///         Unless `resumed`, FileError too if the directory holds checkpoints of another training, or newer
  ///         ones than the one that the model was loaded from (see requireOwnCheckpoints). A model that was
  ///         trained by this process may go on in a directory without later checkpoints than its own place.
  ///         If not `exclusive`, a trained model is not refused: its node may replace another one.
  void onFitStart(const FitEvent& event) override;
  void onMerge(const MergeEvent& event) override;
  void onEpochEnd(const EpochEvent& event) override;
  void onFitEnd(Trainer& trainer) override;

  /// Whether a file is being written.
  bool busy() const;
  /// The last checkpoints, oldest first; complete after `fit()`. Those of every M-th epoch and the best are
  /// not among them.
  const std::deque<std::filesystem::path>& files() const { return kept_.files(); }
  /// The path of the best checkpoint; the file may not exist yet.
  std::filesystem::path bestFile() const;
  /// Its value; nothing before the first. A training that goes on in the directory begins with the file's.
  const std::optional<double>& bestValue() const { return bestValue_; }

 private:
  Clock::time_point now() const { return options_.now ? options_.now() : Clock::now(); }
  void save(Trainer& trainer, const TrainingState& state, const CheckpointPlace& place);
  /// The monitored value if it is the best so far.
  std::optional<double> betterValue(const EpochEvent& event) const;
  void saveBest(Trainer& trainer, const TrainingState& state, double value);
  void readBest();
  /// Refuses names of checkpoints that no file can be written to.
  void requireFiles(const Model& model) const;
  /// Refuses to mix the files of two trainings.
  void requireOwnFiles(const Model& model) const;
  void finishCheckpoint();
  void finishWriting();

  CheckpointOptions options_;
  std::optional<CheckpointLock> lock_;  // during `fit`
  Every iterations_;
  Clock::time_point last_;
  bool due_ = false;
  bool trainedSince_ = false;  // the end of an epoch, and no checkpoint since
  std::optional<CheckpointPlace> saved_;
  std::optional<double> bestValue_;
  detail::KeptCheckpoints kept_;
  std::set<std::filesystem::path> before_;  // unless exclusive: found when the listener was made
  CheckpointPlace inWork_;                  // the checkpoint that `writer_` writes
  ModelWriter writer_, bestWriter_;
};

}  // namespace muster
