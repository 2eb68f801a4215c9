#pragma once

#include <memory>
#include <string_view>

#include "muster/core/nn/network.h"

namespace muster {

/// The network of a configuration, a chain or a graph; not yet initialised.
/// @throws InvalidArgument naming the field that is unknown, missing or wrong, or the invalid option.
std::unique_ptr<Network> networkFromJson(std::string_view json);

}  // namespace muster
