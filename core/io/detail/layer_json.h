#pragma once

#include "muster/core/io/json_fields.h"
#include "muster/core/nn/layer.h"

namespace muster::detail {

// A layer's type and options, and those of its settings that differ from the default, among other fields.
void writeLayer(const Layer& layer, JsonWriter& writer);
/// @throws InvalidArgument naming the field that is unknown, missing or wrong.
Layer readLayer(JsonReader& reader);

}  // namespace muster::detail
