#pragma once

#include <string>

#include "muster/core/io/json_fields.h"
#include "muster/core/nn/module.h"

namespace muster::detail {

/// A layer with all its options, as an element of a configuration's "layers".
std::string layerJson(const Layer& layer);

/// The same among other fields. What is not settled otherwise is left out of `LayerSettings`.
void writeLayer(const Layer& layer, JsonWriter& writer);
Layer readLayer(JsonReader& reader);

}  // namespace muster::detail
