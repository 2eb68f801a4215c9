#include "muster/datasets/cache.h"

#include "tests/support/environment.h"
#include "tests/support/test.h"

namespace muster {
namespace {

std::filesystem::path cacheWith(const char* own, const char* xdg, const char* home) {
  const auto value = [](const char* text) { return text ? std::optional<std::string>(text) : std::nullopt; };
  const test::Environment a("MUSTER_CACHE_DIR", value(own)), b("XDG_CACHE_HOME", value(xdg)),
      c("HOME", value(home));
  return cacheDirectory();
}

TEST_CASE("the first of three environment variables that is set gives the cache directory") {
  CHECK(cacheWith("/own", "/xdg", "/home/me") == "/own");
  CHECK(cacheWith(nullptr, "/xdg", "/home/me") == "/xdg/muster");
  CHECK(cacheWith("", "", "/home/me") == "/home/me/.cache/muster");
  CHECK(cacheWith(nullptr, "relative", "/home/me") == "/home/me/.cache/muster");
  CHECK_THROWS_AS(cacheWith(nullptr, nullptr, nullptr), InvalidArgument);
}

}  // namespace
}  // namespace muster
