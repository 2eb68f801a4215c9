#include "examples/muster/to_onnx.h"
#include "muster/core/base/error.h"

namespace program {

void toOnnx(muster::Network&, const std::filesystem::path&, bool) {
  throw muster::InvalidArgument(
      "--to onnx: this muster was built without the module onnx, which needs libonnx; install libonnx-dev, "
      "libprotobuf-dev and protobuf-compiler and build it again");
}

}  // namespace program
