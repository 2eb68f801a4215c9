#pragma once

#include <cstdint>
#include <optional>

#include "muster/core/eval/evaluation.h"
#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/exchange/node_link.h"

namespace muster {

/// What all nodes have counted together; every node calls it. Of none there is none.
/// @param exchange  of these nodes; not the link, so that another node may ask for something meanwhile.
/// @param failedAt  the earliest batch that failed on this node; the largest number if none did.
/// @return nothing of use where this node's failure is the earliest.
/// @throws TrainingError naming the node whose failure is the earliest, if that is another one;
/// InvalidArgument
///         where nodes predict other classes; NodeFailure.
std::optional<Evaluation> addUpNodes(Exchange& exchange, const NodeLink& link, std::int64_t failedAt,
                                     const std::optional<Evaluation>& own);

}  // namespace muster
