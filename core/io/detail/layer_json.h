#pragma once

#include <string>

#include "muster/core/nn/module.h"

namespace muster::detail {

/// A layer with all its options, as an element of a configuration's "layers".
std::string layerJson(const Layer& layer);

}  // namespace muster::detail
