#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace muster {

/// Writes a file completely or not at all: the bytes go into a temporary file in the same directory, which
/// replaces the target in one step when it is complete and on the disk. Until then, and after any failure,
/// the target is unchanged and the temporary file is removed. A symbolic link is followed.
///
/// The temporary file of a process that was killed stays. It is not locked any more, by which the next one
/// that writes the same target finds and removes it.
///
/// Every member that fails throws FileError naming path and cause; then the object can only be destroyed. One
/// thread at a time.
class AtomicFile {
 public:
  /// Opens the temporary file. @throws FileError also if the path is a directory or device, or a file that
  /// this process may not write.
  explicit AtomicFile(std::filesystem::path path);
  /// Tries to write these bytes for a file at `path`, into a temporary file that has no name, so that nothing
  /// is left even if the process is killed meanwhile. @throws FileError.
  static void probe(const std::filesystem::path& path, std::string_view bytes);
  /// Removes the temporary file unless `commit` succeeded.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Waits until the bytes are on the disk, then renames the file.
  void commit();

 private:
  enum class Temporary { Named, Unnamed };
  AtomicFile(std::filesystem::path path, Temporary kind);
  void openTemporary();
  void openUnnamed();
  [[noreturn]] void fail(std::string_view what, int errorNumber) const;

  std::filesystem::path path_;    // as the caller gave it, for error messages
  std::filesystem::path target_;  // the path with links followed
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// The file that a path leads to through symbolic links, even if that file does not exist.
/// @throws FileError for a link of another user in a directory where everybody may make one, as /tmp.
std::filesystem::path followLinks(const std::filesystem::path& path);

/// Removes temporary files of AtomicFile that their processes have left in a directory: those of targets
/// whose names begin with `prefix`. Files still being written stay. Ignores what cannot be removed.
void removeAbandonedTemporaries(const std::filesystem::path& directory, std::string_view prefix);

/// Replaces the file at `path` by `contents`, completely or not at all. @throws FileError.
void writeFileAtomically(const std::filesystem::path& path, std::string_view contents);
/// As above.
void writeFileAtomically(const std::filesystem::path& path, std::span<const std::byte> contents);

}  // namespace muster
