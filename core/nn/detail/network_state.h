#pragma once

#include <cstdint>
#include <vector>

#include "muster/core/nn/detail/network_plan.h"

namespace muster::detail {

/// Makes a network's blocks on `device`, all zero, and gives its nodes their views: parameters, gradients,
/// and a block of statistics for each merge rule in use.
///
/// The statistics block with rule Moments holds all means, then all variances, in the same order: element i
/// of its first half belongs to element i of the second.
/// @throws InvalidArgument naming a learning-rate scale that is negative or not finite, or a Moments
///         statistic without its partner.
std::vector<StateBlock> makeBlocks(NetworkPlan& plan, Device device);

/// Draws the initial values of all parameters and statistics from the seed, equal on every device.
void drawValues(NetworkPlan& plan, std::uint64_t seed);

}  // namespace muster::detail
