#pragma once

#include <span>
#include <string_view>

#include "muster/core/nn/model.h"
#include "muster/parallel/exchange/exchange.h"

namespace muster {

/// Whether two tensors of one type and size, on any devices, hold the same bits.
bool sameBytes(const Tensor& a, const Tensor& b);

/// The weighted mean over the first dimension, on the CPU; undefined if no weight is above 0.
/// @param all  on the CPU. @param weights  as many as the first dimension has, or none.
Tensor meanOf(const Tensor& all, std::span<const double> weights);

/// Fills the strategy's blocks with the values saved in the user's model, or with their declared start
/// values. Call it while no worker runs, once the merged copies are filled.
/// @param stale  the model was changed since its blocks were saved: a saved block that equals the strategy's
///               is not used.
/// @param means  the model was saved by the same rule: if there are other numbers of workers or nodes now,
///               blocks that permit it get means (StrategyBlock::meanForOthers).
/// @param rule  the strategy's description, for the log.
/// @throws SavedStateError for a saved block with numbers that are not finite, or counts that are none.
void loadStrategyState(Exchange& exchange, Model& model, bool stale, bool means,
                       std::string_view rule = "the strategy");

/// Gives the user's model room for the blocks that are to be saved. May throw; `saveStrategyState` allocates
/// nothing on one node.
/// @param afterFailure  the blocks of each replica are left out.
/// @param together  all nodes call it: each then gets the blocks of every node.
void prepareSavedState(const Exchange& exchange, Model& model, bool afterFailure, bool together);
/// Copies the blocks to that room. Call it while no worker runs.
/// @param together  all nodes call it and wait for each other: numbers of each worker are those of its node.
void saveStrategyState(Exchange& exchange, Model& model, bool together);

/// Adds to the model the blocks of Place::Node that it lacks. Waits for the other nodes.
void collectStrategyState(Exchange& exchange, Model& model);

/// Adds the OwnUpdates of all workers to a checkpoint, if the strategy has them. A resumed worker that gets
/// the state of its replica needs them; one that begins with the model's has had the model's updates. Over
/// nodes it waits for the others.
void addOwnUpdates(TrainingState& state, Exchange& exchange);
/// Fills them from a checkpoint that holds them, for the same workers. @throws SavedStateError for those of
/// another size, and as above.
void takeOwnUpdates(const TrainingState& state, Exchange& exchange);

/// Adds the blocks that hold what is in flight to a checkpoint. Call it while no worker runs. Over nodes it
/// waits for the others.
void addInFlight(TrainingState& state, Exchange& exchange);
/// Fills these blocks from a checkpoint. @throws SavedStateError if it lacks one, and as above.
void takeInFlight(const TrainingState& state, Exchange& exchange);

/// Over nodes: adds the values of all workers of saved blocks of Place::Replica that are not in flight,
/// unless the model holds them. Waits for the other nodes. @param pending  Strategy::pending.
void addOfWorkers(TrainingState& state, Model& model, Exchange& exchange, bool pending);
/// Fills those of these blocks that a checkpoint holds. @throws SavedStateError for one of another size,
/// and as above.
/// @param sameWorkers  as many as those that were saved; else blocks that permit it get means.
/// @param rule  as above.
void takeOfWorkers(const TrainingState& state, Exchange& exchange, bool sameWorkers,
                   std::string_view rule = "the strategy");

}  // namespace muster
