#pragma once

#include <filesystem>
#include <optional>

#include "muster/core/io/detail/lock_file.h"

namespace muster {

/// Lets one thread of one process at a time write files into a directory. The lock is released with its
/// owner, even if the process is killed; the empty file `.lock` stays.
class DirectoryLock {
 public:
  /// Creates the directory if it does not exist, and waits for the lock. @throws FileError.
  explicit DirectoryLock(const std::filesystem::path& directory);

 private:
  std::optional<detail::LockFile> file_;
};

}  // namespace muster
