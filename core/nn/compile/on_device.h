#pragma once

#include <memory>

#include "muster/core/nn/module.h"

namespace muster::detail {

/// The result of the module's `compile`. @throws InvalidArgument if it is null.
std::unique_ptr<VertexProgram> compileHere(const Module& module, const ModuleBinding& binding,
                                           Context& context);

/// Compiles a module for `layerContext` on another device than the network's. The program has a copy of the
/// module's parameters there. In every step it copies parameters and activations there, and outputs,
/// statistics and gradients back. It waits for both devices at each end.
/// @param binding  as for a program on the network's own device.
/// @param layerContext  must outlive the program.
std::unique_ptr<VertexProgram> compileOnDevice(const Module& module, const ModuleBinding& binding,
                                               Context& context, Context& layerContext);

}  // namespace muster::detail
