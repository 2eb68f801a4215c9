#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "muster/core/nn/model.h"

namespace muster {

/// Pointers to the blocks of Model::blocks.
std::vector<StateBlock*> blocksOf(Model& model);

/// Checks that a replica has the blocks and segments of another model, in memory of its own. A `replicate()`
/// that copies tensors copies handles that share memory, and then all replicas would train one array.
/// @param whose  what the error calls the other model, as in "the model's".
/// @throws InvalidArgument naming the block that differs.
void requireCopy(std::span<StateBlock* const> replica, std::span<StateBlock* const> other,
                 std::string_view whose);

}  // namespace muster
