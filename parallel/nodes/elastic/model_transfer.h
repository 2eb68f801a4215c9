#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "muster/core/nn/model.h"

namespace muster {

class NodeLink;

/// The state of a model from which a process can continue its training: a checkpoint in memory.
std::vector<std::byte> packModel(Model& model);
/// Copies such a state to a model of the same architecture. The model changes only if all of the state fits.
/// @throws InvalidArgument for bytes that are not such a state.
void unpackModel(std::span<const std::byte> bytes, Model& model);

/// Copies the model of the most advanced node to all nodes: of the nodes in the training, the first with the
/// most epochs and iterations. A node that has the same state receives nothing. Waits for the other nodes.
/// @param inTraining  whether this node has taken part before; if no node has, all count.
/// @return that node.
/// @throws NodeFailure naming a node that has failed meanwhile; InvalidArgument for a state that does not
///         fit: the model does not change.
int shareModel(NodeLink& link, Model& model, bool inTraining);

}  // namespace muster
