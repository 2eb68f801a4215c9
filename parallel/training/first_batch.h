#pragma once

#include "muster/core/nn/model.h"
#include "muster/parallel/runtime/activity.h"

namespace muster {

/// Throws here, rather than in the first step, if the model's updater cannot update its parameters.
void requireUpdater(Model& model);

/// Calls `Model::fitBeforeTraining`. @throws TrainingError for any failure.
void fitBeforeTraining(Model& model, DataSetIterator& data, Activity& caller);

/// Reads the first batch of epoch `epoch` that is not trained, and prepares the model for it.
/// @param begun  what is trained of the epoch.
/// @param first  its stamp receives the position of its first example.
/// @return false if there is no batch.  @throws TrainingError for any failure.
bool prepareModel(Model& model, DataSetIterator& data, Activity& caller, std::int64_t epoch,
                  const EpochPosition& begun, Batch& first);

}  // namespace muster
