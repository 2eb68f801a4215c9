#pragma once

#include <cstdint>
#include <optional>

#include "muster/core/eval/any_evaluation.h"
#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/nodes/node_link.h"

namespace muster {

/// Adds up the counts of all nodes; every node calls it. Returns nothing if no node has counts.
/// @param exchange  of these nodes; used instead of the link, so that another node may ask for blocks
///                  meanwhile.
/// @param failedAt  the earliest batch that failed on this node; the largest number if none did.
/// @return nothing if this node's failure is the earliest.
/// @throws TrainingError naming the node with the earliest failure, if it is another node; InvalidArgument
///         if nodes predict different classes; NodeFailure.
std::optional<AnyEvaluation> addUpNodes(Exchange& exchange, const NodeLink& link, std::int64_t failedAt,
                                        const std::optional<AnyEvaluation>& own);

}  // namespace muster
