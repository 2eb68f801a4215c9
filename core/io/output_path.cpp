#include "muster/core/io/output_path.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "muster/core/base/error.h"

namespace muster {

namespace fs = std::filesystem;

void checkOutputFile(const fs::path& file) {
  if (file.empty()) return;
  if (fs::is_directory(file)) throw FileError(file, "cannot be written: it is a directory");
  const fs::path directory = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (::access(directory.c_str(), W_OK | X_OK) != 0)
    throw FileError(
        file, fmt::format("cannot be written: its directory: {}", std::generic_category().message(errno)));
}

void checkOutputDirectory(const fs::path& directory) {
  if (directory.empty()) return;
  std::error_code unreachable;
  fs::path above = fs::absolute(directory);  // it, or the nearest above it that is there
  while (!fs::exists(above, unreachable) && above.has_relative_path()) above = above.parent_path();
  const int problem = !fs::is_directory(above)                    ? ENOTDIR
                      : ::access(above.c_str(), W_OK | X_OK) != 0 ? errno
                                                                  : 0;
  if (problem == 0) return;
  throw FileError(directory, fmt::format("cannot be made: {}: {}", above.string(),
                                         std::generic_category().message(problem)));
}

}  // namespace muster
