#pragma once

#include "muster/core/nn/model.h"
#include "muster/parallel/exchange/exchange.h"

namespace muster {

/// Whether two tensors of one type and size, on whatever device, hold the same bits.
bool sameBytes(const Tensor& a, const Tensor& b);

/// Fills the strategy's blocks from what the user's model has saved of them, or as the strategy has declared
/// that they start. While no worker runs, once the merged copies are filled.
/// @param stale  the model was changed since they were saved: saved blocks that are still the same count for
///               nothing.
void loadStrategyState(Exchange& exchange, Model& model, bool stale);

/// Gives the user's model room for the blocks that are to be saved. May throw; `saveStrategyState` allocates
/// nothing.
/// @param afterFailure  the blocks of each replica are left out.
/// @param together  all nodes do it: each then gets the blocks of every node.
void prepareSavedState(const Exchange& exchange, Model& model, bool afterFailure, bool together);
/// Copies these blocks there. While no worker runs.
void saveStrategyState(Exchange& exchange, Model& model);
/// Adds the blocks of every node that the model lacks. Waits for the other nodes.
void collectStrategyState(Exchange& exchange, Model& model);

/// Adds the blocks that hold what is in flight to a checkpoint. While no worker runs.
void addInFlight(TrainingState& state, const Exchange& exchange);
/// Fills them from there. @throws InvalidArgument for a state that lacks one.
void takeInFlight(const TrainingState& state, Exchange& exchange);

}  // namespace muster
