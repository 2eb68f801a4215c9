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
  /// Layers, vertices and outputs: a label ("layer 0", "vertex conv1") and a JSON object in one line.
  std::vector<std::pair<std::string, std::string>> parts;
};

NetworkParts partsOf(const Network& network);

/// How two different parts differ first, as in `layer 0 has outChannels 20 there, and 8 here`.
std::string firstDifference(const std::pair<std::string, std::string>& there,
                            const std::pair<std::string, std::string>& here);

}  // namespace muster::detail
