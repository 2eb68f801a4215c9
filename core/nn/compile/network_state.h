#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "muster/core/nn/compile/network_plan.h"

namespace muster::detail {

/// Makes a network's blocks on `device`, all zero, and gives its nodes their views: parameters, gradients,
/// and a block of statistics for each merge rule in use.
///
/// The statistics block with rule Moments holds all means, then all variances, in the same order: element i
/// of its first half belongs to element i of the second.
/// @param more  further blocks of the parameters' size, made by the caller, that must also fit in memory.
/// @throws InvalidArgument naming a learning-rate scale that is negative or not finite, or a Moments
///         statistic without its partner; OutOfMemory as requireRoom.
std::vector<StateBlock> makeBlocks(NetworkPlan& plan, Device device, std::size_t more = 0);

/// Refuses parameters that do not fit in the process's memory limit.
/// @param blocks  number of blocks of the parameters' size: parameters, gradients, updater state.
/// @param root  see requireMemoryRoom.
/// @throws OutOfMemory naming the largest parameter.
void requireRoom(const SegmentTable& parameters, std::size_t blocks, const std::string& root = "/");

/// Draws the initial values of all parameters and statistics from the seed, equal on every device.
void drawValues(NetworkPlan& plan, std::uint64_t seed);

}  // namespace muster::detail
