#pragma once

#include <cstdint>
#include <filesystem>

namespace muster {

/// A regular file, open for reading. A directory, a pipe or a device is refused at once: opening a pipe would
/// wait until another process writes.
///
/// Every member that fails throws FileError naming path and cause. One thread at a time.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Bytes in the file when it was opened.
  std::uint64_t size() const { return size_; }
  /// Reads the next `bytes` bytes. @throws FileError also if fewer are left.
  void read(void* target, std::uint64_t bytes);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// What a path leads to; `not_found` if there is nothing.
/// @throws FileError if that cannot be determined, as below a directory that must not be searched.
std::filesystem::file_type fileTypeOf(const std::filesystem::path& path);

}  // namespace muster
