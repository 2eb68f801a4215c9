#pragma once

#include <filesystem>

#include "muster/core/nn/network.h"

namespace program {

/// Writes a network as an ONNX model. @param lengths  as in OnnxOptions.
/// @throws InvalidArgument if this program was built without muster::onnx; otherwise as exportOnnx.
void toOnnx(muster::Network& network, const std::filesystem::path& path, bool lengths);

}  // namespace program
