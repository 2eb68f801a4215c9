#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster::detail {

/// One step of a path: a field, then array indices, as in "layers[2]".
struct Step {
  std::string name;
  std::vector<std::size_t> places;
};

/// Splits a path at dots, but not within the name of a strategy's option.
/// @throws InvalidArgument for one that is not as in network.layers[2].outChannels.
std::vector<Step> stepsOf(std::string_view path);

}  // namespace muster::detail
