#pragma once

#include <optional>

#include "muster/core/data/batch.h"
#include "muster/core/nn/compile/network_plan.h"
#include "muster/core/nn/compile/network_program.h"
#include "muster/core/nn/step/staging_slot.h"
#include "muster/core/nn/step_ticket.h"
#include "muster/core/nn/task.h"

namespace muster::detail {

// A network's loss: the weighted sum of its outputs' losses. Its normaliser is the largest of the outputs'.
// With several outputs, errors name the output.

/// @throws InvalidArgument if an output has no loss.
void requireLoss(const NetworkPlan& plan);

/// What the first output predicts, see Network::task.
Task taskOf(const NetworkPlan& plan);

/// Checks the values of float labels, see label_values.h. @param batch  as the step is given it: labels that
/// are on a GPU already are not checked.
void requireLabelValues(const NetworkPlan& plan, const Batch& batch);

/// The score of the outputs that `program` holds; waits for it.
/// @param derivatives  also writes the output gradients.
StepScore lossOf(const NetworkPlan& plan, NetworkProgram& program, const Batch& batch, bool derivatives,
                 Context& context);

/// Enqueues losses and output gradients of the outputs that `program` holds for the slot's batch, and writes
/// the loss numbers to the slot. May be recorded.
void enqueueLosses(const NetworkPlan& plan, NetworkProgram& program, StagingSlot& slot, Context& context);
/// The score from these numbers, after the slot has fetched them.
/// @throws InvalidArgument for a label out of range.
StepScore scoreOf(const NetworkPlan& plan, const NetworkProgram& program, const StagingSlot& slot);

/// The loss normaliser of `program`'s outputs for a batch, before the step; nothing if it depends on a mask.
std::optional<double> knownWeight(const NetworkPlan& plan, const NetworkProgram& program, const Batch& batch);

}  // namespace muster::detail
