#include "examples/muster/deeplearning4j.h"

#include "muster/core/interop/dl4j/dl4j.h"

namespace program {

std::unique_ptr<muster::Network> fromDeeplearning4j(const std::filesystem::path& path,
                                                    const std::vector<muster::Shape>& shapes) {
  return muster::dl4j::load(path, {.inputShapes = shapes});
}

void toDeeplearning4j(muster::Network& network, const std::filesystem::path& path) {
  muster::dl4j::save(network, path);
}

}  // namespace program
