#include "examples/muster/pages.h"

#include <fmt/format.h>

#include "muster/core/base/error.h"
#include "muster/parallel/run/detail/watching.h"

namespace program {

std::string stillPageOf(const std::filesystem::path&) {
  throw muster::InvalidArgument(fmt::format("page: {}", muster::detail::kNoPage));
}

std::vector<std::filesystem::path> curvesBelow(const std::filesystem::path&) {
  return {};
}

std::string_view pageMark() {
  return {};
}

std::string_view curvesMark() {
  return {};
}

void writeCurves(const std::filesystem::path&, const PageCurves&) {}

void servePage(const std::filesystem::path&, int, const std::stop_token&) {
  throw muster::InvalidArgument(fmt::format("page: {}", muster::detail::kNoPage));
}

}  // namespace program
