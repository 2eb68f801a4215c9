#pragma once

#include "muster/core/data/batch.h"
#include "muster/core/nn/detail/network_plan.h"
#include "muster/core/nn/detail/network_program.h"
#include "muster/core/nn/detail/step_lane.h"

namespace muster::detail {

// A network's loss: the sum of its outputs' losses times their weights. Its normaliser is the largest of the
// outputs'. Errors name the output where there are several.

/// @throws InvalidArgument where an output has no loss.
void requireLoss(const NetworkPlan& plan);

/// The score of what `program` holds, waited for. @param derivatives  writes the output gradients, too.
StepScore lossOf(const NetworkPlan& plan, NetworkProgram& program, const Batch& batch, bool derivatives,
                 Context& context);

/// Enqueues the losses and output gradients of what `program` holds for the lane's batch; the numbers go to
/// the lane. May be recorded.
void enqueueLosses(const NetworkPlan& plan, NetworkProgram& program, StepLane& lane, Context& context);
/// What those numbers came to, once the lane has fetched them. @throws InvalidArgument for a label out of
/// range.
StepScore scoreOf(const NetworkPlan& plan, const NetworkProgram& program, const StepLane& lane);

}  // namespace muster::detail
