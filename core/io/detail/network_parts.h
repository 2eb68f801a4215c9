#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/core/nn/network.h"

namespace muster::detail {

/// A network's inputs and computation, from its configuration: two networks with equal parts differ at most
/// in their seed and training options.
struct NetworkParts {
  /// The inputs' names, and the shapes of one example; an open shape is empty.
  std::vector<std::pair<std::string, Shape>> inputs;
  /// Layers, vertices and outputs: a label ("layer 0", "vertex conv1") and a description in one line.
  std::vector<std::pair<std::string, std::string>> parts;
};

NetworkParts partsOf(const Network& network);

}  // namespace muster::detail
