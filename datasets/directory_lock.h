#pragma once

#include <filesystem>

namespace muster {

/// Held by one process, and one thread of it, at a time: whoever puts files into a directory. The lock goes
/// with its owner, even one that is killed; the empty file `.lock` stays.
class DirectoryLock {
 public:
  /// Makes the directory where it is missing, and waits for the lock. @throws FileError.
  explicit DirectoryLock(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace muster
