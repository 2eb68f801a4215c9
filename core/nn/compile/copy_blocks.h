#pragma once

#include <span>

#include "muster/core/optim/state_block.h"

namespace muster::detail {

/// Copies the blocks of one model to those of another on any device, block by block; gradients not, and the
/// updater's state only if `withUpdaterState`. Waits for no stream.
/// @throws InvalidArgument naming the first block that has another name or shape; earlier ones were copied.
void copyBlocks(std::span<StateBlock* const> from, std::span<StateBlock* const> to, bool withUpdaterState);

}  // namespace muster::detail
