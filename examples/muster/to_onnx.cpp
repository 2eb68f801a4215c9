#include "examples/muster/to_onnx.h"

#include "muster/core/interop/onnx/export_onnx.h"

namespace program {

void toOnnx(muster::Network& network, const std::filesystem::path& path, bool lengths) {
  muster::exportOnnx(network, path, {.lengths = lengths});
}

}  // namespace program
