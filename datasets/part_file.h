#pragma once

#include <cstddef>
#include <filesystem>

namespace muster {

/// A file under way to `target`: written beside it as `<target>.part`, and either committed whole or removed.
/// One at a time may write to a target: hold a DirectoryLock.
class PartFile {
 public:
  /// Creates the file, or empties one that a killed process left. @throws FileError.
  explicit PartFile(const std::filesystem::path& target);
  /// Removes the file unless it was committed.
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Appends. @throws FileError, as where the disk is full.
  void write(const void* data, std::size_t size);
  /// Makes the file empty again. @throws FileError.
  void clear();
  /// Gives the file its name, in one step, after its bytes have reached the disk. @throws FileError.
  void commit();

 private:
  [[noreturn]] void fail(int error) const;

  std::filesystem::path target_;
  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Held by one process, and one thread of it, at a time: whoever puts files into a directory. The lock goes
/// with its owner, even one that is killed; the empty file `.lock` stays.
class DirectoryLock {
 public:
  /// Makes the directory where it is missing and waits for the lock. @throws FileError.
  explicit DirectoryLock(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace muster
