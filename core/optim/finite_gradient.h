#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "muster/core/base/error.h"
#include "muster/core/optim/state_block.h"

namespace muster {

/// An update was refused: neither parameters nor the updater's state have changed.
class UpdateRefused : public NonFiniteScore {
 public:
  using NonFiniteScore::NonFiniteScore;
};

/// Checks a gradient block on the CPU right after the backward pass, while it is in the caches, so that only
/// finite gradients reach parameters or a merge. Frozen segments are not checked; a block without segments is
/// checked as a whole, and its own name is the segment's. Allocates nothing unless it throws. Does nothing
/// for a block on a GPU, where the update does it (UpdateGuard).
/// @throws UpdateRefused naming the segment and the element.
void requireFiniteGradient(const StateBlock& gradients);

/// Checks any block of float32 or float64 likewise. @return the largest magnitude; 0 for a block on a GPU.
/// @throws NonFiniteScore naming `what`, the segment and the element.
double requireFiniteBlock(const StateBlock& block, std::string_view what);

/// Checks the statistics among the blocks likewise.
void requireFiniteStatistics(std::span<const StateBlock> blocks);

/// Throws the reason why an update was refused (`UpdatePlan::run`): an element of the gradient that is not
/// finite, or else the segment with the largest numbers.
[[noreturn]] void refuseUpdate(const StateBlock& parameters, const StateBlock& gradients);

/// Throws the error for what the guard of an update on a GPU has found.
/// @param element  of the gradient block.
/// @throws UpdateRefused naming the segment and its element.
[[noreturn]] void throwNonFiniteGradient(const SegmentTable& segments, std::int64_t element);

}  // namespace muster
