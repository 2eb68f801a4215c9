#pragma once

#include <string>

#include "muster/core/nn/model.h"

namespace muster {

/// Says if a layer that ignores the mask "features" reads padding that is not zeros: what padding holds then
/// changes the layer's outputs at real steps. "" if not, or without such a mask.
/// @param first  the first batch of a training; without padding in it nothing is said. The model is prepared.
std::string maskRemark(const Model& model, const Batch& first);

}  // namespace muster
