#pragma once

#include "muster/core/data/batch.h"
#include "muster/core/nn/detail/network_plan.h"
#include "muster/core/nn/detail/network_program.h"
#include "muster/core/nn/detail/staging_slot.h"
#include "muster/core/nn/step_ticket.h"

namespace muster::detail {

// A network's loss: the sum of its outputs' losses times their weights. Its normaliser is the largest of the
// outputs'. Errors name the output where there are several.

/// @throws InvalidArgument where an output has no loss.
void requireLoss(const NetworkPlan& plan);

/// The score of what `program` holds, waited for. @param derivatives  writes the output gradients, too.
StepScore lossOf(const NetworkPlan& plan, NetworkProgram& program, const Batch& batch, bool derivatives,
                 Context& context);

/// Enqueues losses and output gradients of the outputs that `program` holds for the slot's batch, and writes
/// the loss numbers to the slot. May be recorded.
void enqueueLosses(const NetworkPlan& plan, NetworkProgram& program, StagingSlot& slot, Context& context);
/// The score from these numbers, after the slot has fetched them.
/// @throws InvalidArgument for a label out of range.
StepScore scoreOf(const NetworkPlan& plan, const NetworkProgram& program, const StagingSlot& slot);

}  // namespace muster::detail
