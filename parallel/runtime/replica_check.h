#pragma once

#include <span>
#include <string_view>

#include "muster/core/optim/state_block.h"

namespace muster {

/// Throws InvalidArgument unless a replica has the blocks and segments of another model, in memory of its
/// own: with handles that share memory that is easily done wrong, and all replicas would train one array.
/// @param whose  of the other, as in "the model's".
void requireCopy(std::span<StateBlock* const> replica, std::span<StateBlock* const> other,
                 std::string_view whose);

}  // namespace muster
