#include "examples/muster/deeplearning4j.h"
#include "muster/core/base/error.h"

namespace program {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path) {
  throw muster::InvalidArgument(
      fmt::format("{}: this muster was built without the module dl4j, which needs libzip; install "
                  "libzip-dev and build it again",
                  path.string()));
}

}  // namespace

std::unique_ptr<muster::Network> fromDeeplearning4j(const std::filesystem::path& path,
                                                    const std::vector<muster::Shape>&) {
  refuse(path);
}

void toDeeplearning4j(muster::Network&, const std::filesystem::path& path) {
  refuse(path);
}

}  // namespace program
