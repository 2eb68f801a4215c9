#pragma once

#include <vector>

#include "muster/core/nn/detail/chain_program.h"

namespace muster::detail {

/// Makes a chain's blocks, all zero, and gives the layers their views of them: parameters, gradients, and a
/// block of statistics for each merge rule that some statistic has.
///
/// The statistics block of rule Moments holds all means, then all variances, in the same order: element i of
/// its first half goes with element i of the second.
/// @throws InvalidArgument naming a learning-rate scale that is negative or not finite, or a statistic of
///         rule Moments without its partner.
std::vector<StateBlock> makeBlocks(std::vector<ChainLayer>& chain);

}  // namespace muster::detail
