#include "muster/datasets/cache.h"

#include <cstdlib>

#include "muster/core/base/error.h"

namespace muster {

std::filesystem::path pathFromEnvironment(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

std::filesystem::path cacheDirectory() {
  if (auto own = pathFromEnvironment("MUSTER_CACHE_DIR"); !own.empty()) return own;
  // The XDG base directory specification says to ignore relative paths.
  if (auto xdg = pathFromEnvironment("XDG_CACHE_HOME"); xdg.is_absolute()) return xdg / "muster";
  const auto home = pathFromEnvironment("HOME");
  require(!home.empty(), "cache: neither MUSTER_CACHE_DIR nor XDG_CACHE_HOME nor HOME is set");
  return home / ".cache" / "muster";
}

}  // namespace muster
