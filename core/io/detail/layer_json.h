#pragma once

#include "muster/core/io/json_fields.h"
#include "muster/core/nn/layer.h"

namespace muster::detail {

/// Writes a layer's type, options and settings that are not the default into the current object.
void writeLayer(const Layer& layer, JsonWriter& writer);
/// @throws InvalidArgument naming the field that is unknown, missing or wrong.
Layer readLayer(JsonReader& reader);

}  // namespace muster::detail
