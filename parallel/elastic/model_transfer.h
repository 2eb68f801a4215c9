#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "muster/core/nn/model.h"

namespace muster {

class NodeLink;

/// What a process needs of a model to go on with its training: the content of a checkpoint, in memory.
std::vector<std::byte> packModel(Model& model);
/// Gives it to a model of the same architecture, which is changed only if all of it fits.
/// @throws InvalidArgument for bytes that are no such state.
void unpackModel(std::span<const std::byte> bytes, Model& model);

/// Gives all nodes the model of the one that is ahead: of those that are in the training the one with the
/// most epochs and iterations, of several the first. A node that has the same already receives nothing. Waits
/// for the others.
/// @param inTraining  whether this node has taken part before; where none has, all count.
/// @return  the node.
/// @throws NodeFailure naming a node that has failed meanwhile; InvalidArgument for a state that does not
/// fit:
///         the model is as before.
int shareModel(NodeLink& link, Model& model, bool inTraining);

}  // namespace muster
