#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace muster {

/// Writes a file whole or not at all: the bytes go into a temporary file in the same directory, which takes
/// the path's place in one step when it is complete and on the disk. Until then, and after any failure, the
/// path holds what it held before; nothing is left behind. A symbolic link is followed.
///
/// Every member that fails throws FileError naming the path and the cause, after which the object can only
/// be destroyed. One thread at a time.
class AtomicFile {
 public:
  /// Opens the temporary file. @throws FileError also where the path holds a directory or device, or a file
  /// that this process may not write.
  explicit AtomicFile(std::filesystem::path path);
  /// Removes the temporary file unless `commit` was reached.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Waits until the disk has the bytes, then gives the file its name.
  void commit();

 private:
  void openTemporary();
  [[noreturn]] void fail(std::string_view what, int errorNumber) const;

  std::filesystem::path path_;    // as the caller gave it, for errors
  std::filesystem::path target_;  // where the bytes go, links followed
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// Replaces the file at `path` by `contents`, whole or not at all. @throws FileError.
void writeFileAtomically(const std::filesystem::path& path, std::string_view contents);
void writeFileAtomically(const std::filesystem::path& path, std::span<const std::byte> contents);

}  // namespace muster
