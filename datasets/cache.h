#pragma once

#include <filesystem>

namespace muster {

/// The directory for downloaded files: $MUSTER_CACHE_DIR, else $XDG_CACHE_HOME/muster, else ~/.cache/muster.
/// It may not exist yet. @throws InvalidArgument if none of these variables and HOME is set.
std::filesystem::path cacheDirectory();

/// The value of an environment variable; empty if it is not set.
std::filesystem::path pathFromEnvironment(const char* variable);

}  // namespace muster
