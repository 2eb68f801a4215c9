#pragma once

#include <string>

#include "muster/core/nn/model.h"

namespace muster {

/// Says if a dense layer reads columns whose magnitudes differ by more than 100 times, as those of a table
/// often do: it then learns from the large ones alone. "" if not, or if another layer reads the features.
/// @param first  the first batch of a training. The model is prepared.
std::string scaleRemark(const Model& model, const Batch& first);

}  // namespace muster
