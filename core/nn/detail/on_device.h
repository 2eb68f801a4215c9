#pragma once

#include <memory>

#include "muster/core/nn/module.h"

namespace muster::detail {

/// What the module's `compile` gives. @throws InvalidArgument where that is nothing.
std::unique_ptr<VertexProgram> compileHere(const Module& module, const ModuleBinding& binding,
                                           Context& context);

/// Compiles a module for `layerContext`, another device than the network's: the program has a copy of the
/// module's parameters there, fetches them and the activations in every step, and brings outputs, statistics
/// and gradients back. It waits for both devices at each end.
///
/// @param binding  as for a program on the network's own device.
/// @param layerContext  outlives the program.
std::unique_ptr<VertexProgram> compileOnDevice(const Module& module, const ModuleBinding& binding,
                                               Context& context, Context& layerContext);

}  // namespace muster::detail
