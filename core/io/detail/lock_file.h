#pragma once

#include <filesystem>

namespace muster::detail {

/// An open file with an advisory lock (flock), which ends with this object, even if its process is killed.
/// Each object opens the file for itself, so the objects of one process exclude each other, too.
class LockFile {
 public:
  /// Opens the file, or creates it. @throws FileError.
  explicit LockFile(std::filesystem::path path);
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  /// @return 0; EWOULDBLOCK if another object has the lock; or another error number, if for example the file
  ///         system has no locks.
  int tryLock() const;
  /// Waits for the lock. @return 0, or an error number.
  int lock() const;
  /// Whether the path still names the file. If not, other processes that open the path now are not excluded.
  bool hasName() const;

  int descriptor() const { return descriptor_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace muster::detail
