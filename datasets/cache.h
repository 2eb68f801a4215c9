#pragma once

#include <filesystem>

namespace muster {

/// Where downloaded files are kept: $MUSTER_CACHE_DIR, else $XDG_CACHE_HOME/muster, else ~/.cache/muster. It
/// need not exist yet. @throws InvalidArgument where none of the three variables, HOME the last, is set.
std::filesystem::path cacheDirectory();

/// The value of an environment variable; empty where it is not set.
std::filesystem::path pathFromEnvironment(const char* variable);

}  // namespace muster
