#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "muster/core/io/detail/lock_file.h"

namespace muster {

/// Lets one training at a time write checkpoints of one name into a directory. The lock ends with this object
/// or its process, however that ends; a killed process leaves a small file, which the next training removes.
class CheckpointLock {
 public:
  /// @param directory  must exist.  @param baseName  of the checkpoints.
  /// @throws FileError if another training has the lock, naming the directory and the process; or if the lock
  ///         file cannot be made. On a file system without locks nothing is locked.
  CheckpointLock(const std::filesystem::path& directory, const std::string& baseName);
  ~CheckpointLock();
  CheckpointLock(const CheckpointLock&) = delete;
  CheckpointLock& operator=(const CheckpointLock&) = delete;

 private:
  std::optional<detail::LockFile> file_;  // empty: nothing is locked
};

}  // namespace muster
