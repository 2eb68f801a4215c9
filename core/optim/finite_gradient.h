#pragma once

#include "muster/core/optim/state_block.h"

namespace muster {

/// Checks a gradient block on the CPU right after the backward pass, while it is in the caches: nothing that
/// is not finite reaches parameters or a merge. Frozen segments are not looked at. Allocates nothing unless
/// it throws. Does nothing for a block on a GPU.
/// @throws NonFiniteScore naming the segment and the element.
void requireFiniteGradient(const StateBlock& gradients);

}  // namespace muster
