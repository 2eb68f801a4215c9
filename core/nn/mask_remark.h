#pragma once

#include <string>

#include "muster/core/nn/model.h"

namespace muster {

/// Says if a layer that ignores the mask "features" reads padding that is not zeros: what padding holds then
/// changes the layer's outputs at real steps. Or that a mask called "features" has no effect, since it fits no
/// sequence. "" if neither, or without such a mask.
/// @param first  the first batch of a training; without padding in it nothing is said. The model is prepared.
std::string maskRemark(const Model& model, const Batch& first);

}  // namespace muster
