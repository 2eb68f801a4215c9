#pragma once

#include <cstdint>
#include <optional>

#include "muster/core/device/context.h"
#include "muster/core/nn/model.h"

namespace muster {

/// Bytes that a network on the CPU takes for a step, or for its output if not `training`, in addition to its
/// state: activations, their gradients, weights in the kernels' formats. Nothing is computed, but a program
/// for this batch is made and dropped again, which takes as long as a replica's does.
/// @param examples  of a batch.  @param options  as that of a replica; its cores do not matter.
/// @return nothing for a model of your own, a network on a GPU or one without parameters.
/// @throws OutOfMemory if the process's limit on memory leaves no room for one.
std::optional<std::int64_t> stepBytes(Model& model, std::int64_t examples, bool training,
                                      const ContextOptions& options);

}  // namespace muster
