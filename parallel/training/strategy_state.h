#pragma once

#include <span>
#include <string_view>

#include "muster/core/nn/model.h"
#include "muster/parallel/exchange/exchange.h"

namespace muster {

/// Copies into each tensor that is in this process, once: workers on one device share a merged copy.
void copyToAll(const Tensor& from, std::span<const Tensor> targets);

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
/// @throws SavedStateError for a saved block with impossible numbers.
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

/// What a checkpoint holds of the strategy's blocks in addition to what the model holds.
enum class Section {
  OwnUpdates,  ///< kOwnUpdates: a worker that gets the state of its replica needs them
  InFlight,    ///< blocks with values in flight
  OfWorkers    ///< over nodes: the other saved blocks of Place::Replica, of all workers
};

/// Adds the blocks of a section, of all workers, unless the model holds them. Call it while no worker runs.
/// Over nodes it waits for the others. @param pending  Strategy::pending.
void addSection(TrainingState& state, Section section, Model& model, Exchange& exchange, bool pending);

/// Fills those of these blocks that a checkpoint holds. @throws SavedStateError for one of another size, or
/// one in flight that is missing, and as above.
/// @param sameWorkers  as many as those that were saved; else blocks that permit it get means.
/// @param rule  as above.
void takeSection(const TrainingState& state, Section section, Exchange& exchange, bool sameWorkers = true,
                 std::string_view rule = "the strategy");

}  // namespace muster
