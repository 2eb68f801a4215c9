#pragma once

#include <string>

#include "muster/core/nn/model.h"

namespace muster {

/// Where the layers of two networks differ so that their predictions may: the first one of another type, with
/// other inputs, or with another field. As in "its layer dense1 has the activation relu, the other's
/// tanh". Names, and fields that count in training only, are not compared. "" if none differs, before init(),
/// or for models that are not networks.
/// @param other  how the other one is called, as in "the served model's".
std::string layerDifference(const Model& mine, const Model& theirs, const std::string& other);

}  // namespace muster
