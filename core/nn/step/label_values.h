#pragma once

#include "muster/core/data/batch.h"
#include "muster/core/nn/compile/network_plan.h"

namespace muster::detail {

/// Checks float labels of `output` that are in host memory, also those that a batch names by row numbers: of
/// BinaryCrossEntropy they are from 0 to 1, of NegativeLogLikelihood they are the row's shares of the
/// classes, from 0 to 1, with a sum of 1. They may be off by 1e-3, and the sum by 0.015, for rounding. Rows of weight 0 may hold
/// anything. NaN passes: the score becomes NaN, too, and then says where it is. Labels of another form pass,
/// as another check refuses them. Does not allocate; one pass over the labels.
/// @param named  false: the network has one output, so its labels and mask may have any name.
/// @throws InvalidArgument naming the row and the value.
void requireLabelValues(const NetworkPlan& plan, const NetworkOutput& output, const Batch& batch, bool named);

}  // namespace muster::detail
