#pragma once

#include <optional>

#include "muster/core/nn/listener.h"
#include "muster/core/nn/training_state.h"

namespace example {

/// Keeps the training state that a checkpoint needs beside the model.
struct LastState final : muster::Listener {
  void onFitEnd(muster::Trainer& trainer) override { state = trainer.trainingState(); }
  std::optional<muster::TrainingState> state;  // empty until `fit()` ends on this node
};

}  // namespace example
