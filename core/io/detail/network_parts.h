#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/core/nn/network.h"

namespace muster::detail {

/// What a network takes and what it computes, as its configuration says: two networks with equal parts differ
/// at most in their seed and in how they are trained.
struct NetworkParts {
  /// The inputs' names, and the shapes of one example; a shape is empty while it is open.
  std::vector<std::pair<std::string, Shape>> inputs;
  /// Layers, vertices and outputs: a label ("layer 0", "vertex conv1") and what it is, in one line.
  std::vector<std::pair<std::string, std::string>> parts;
};

NetworkParts partsOf(const Network& network);

}  // namespace muster::detail
