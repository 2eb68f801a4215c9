#pragma once

#include <filesystem>
#include <utility>
#include <vector>

#include "muster/core/nn/training_state.h"

namespace muster::detail {

/// What trainings attach to a model besides its blocks, and the file that it was loaded from.
class AttachedState {
 public:
  AttachedState(const AttachedState&) = delete;
  AttachedState& operator=(const AttachedState&) = delete;

  /// The state of a ParallelWrapper's strategy (outer momentum, residuals), as of the last merge. It is saved
  /// and loaded with the model, and the next wrapper with such a strategy continues from it. `fit` and `init`
  /// clear it.
  std::vector<NamedValues>& strategyState() { return strategyState_; }

  /// State that listeners keep with the model, such as MergedModelAverage's: on the CPU or on the model's
  /// device. It is saved, loaded and copied with the model; `init` clears it.
  std::vector<NamedValues>& listenerState() { return listenerState_; }

  /// What a checkpoint holds in addition (TrainingState), filled by loading one. The next `fit`, of the model
  /// or of a wrapper, continues from it, and clears it once it has trained; `init` clears it, too.
  TrainingState& trainingState() { return trainingState_; }

  /// The file that holds the model's state, for messages, and for a CheckpointListener, which takes a trained
  /// model for a continuation of that file's training (`setLoadedFrom({})`: it is none); empty: none, or the
  /// model was changed since. `load` and `loadState` set it, and `copyStateFrom` takes it over with the
  /// updater's state; `init`, `loadWeights`, training and a copy of the parameters alone clear it.
  const std::filesystem::path& loadedFrom() const { return loadedFrom_; }
  void setLoadedFrom(std::filesystem::path file) noexcept { loadedFrom_ = std::move(file); }

 protected:
  AttachedState() = default;
  ~AttachedState() = default;

  /// Copies the state of the strategy and of the listeners.
  void copyAttached(const AttachedState& other);
  void clearAttached();

 private:
  std::vector<NamedValues> strategyState_, listenerState_;
  TrainingState trainingState_;
  std::filesystem::path loadedFrom_;
};

}  // namespace muster::detail
