#include "muster/core/io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/directory_names.h"
#include "muster/core/io/detail/uninterrupted.h"

namespace muster {

using detail::uninterrupted;

namespace {

constexpr mode_t kModeOfNewFiles = 0666;  // restricted by the process's umask
constexpr int kNamesToTry = 1000;
constexpr const char* kNotRegular = "cannot be written: it is not a regular file";
constexpr int kMostLinks = 40;             // as Linux
constexpr std::size_t kLongestStem = 220;  // so that the temporary name stays below 255 bytes

/// The beginning of a temporary file's name.
std::string temporaryStem(std::string_view targetName) {
  return fmt::format(".{}", targetName.substr(0, kLongestStem));
}

std::filesystem::path directoryOf(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

/// Whether a link may be followed. Like Linux (fs.protected_symlinks), this refuses links of other users in
/// directories such as /tmp, where everybody may make one.
bool isTrusted(const std::filesystem::path& link) {
  struct stat own {
  }, directory{};
  if (::lstat(link.c_str(), &own) != 0 || ::stat(directoryOf(link).c_str(), &directory) != 0) return true;
  const bool shared = (directory.st_mode & S_ISVTX) != 0 && (directory.st_mode & S_IWOTH) != 0;
  return !shared || own.st_uid == ::geteuid() || own.st_uid == directory.st_uid;
}

/// An open directory whose entries can be synced to the disk.
class Directory {
 public:
  explicit Directory(const std::filesystem::path& path)
      : descriptor_(uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); })) {
  }
  ~Directory() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  bool open() const { return descriptor_ >= 0; }
  /// Makes new names survive a power cut. Some file systems cannot sync directories (EINVAL) and need not.
  bool sync() const {
    return uninterrupted([&] { return ::fsync(descriptor_); }) == 0 || errno == EINVAL;
  }

 private:
  int descriptor_;
};

/// Locks a temporary file that was just created. @return false if another process has removed it meanwhile.
/// True on a file system without locks: no process removes files there.
bool holdsLock(int descriptor) {
  struct stat status {};
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  return ::fstat(descriptor, &status) != 0 || status.st_nlink > 0;
}

/// Whether a name has the ending of temporary files: ".<process>.<number>.tmp".
bool endsAsTemporary(std::string_view name) {
  constexpr std::string_view kEnd = ".tmp";
  if (!name.ends_with(kEnd)) return false;
  name.remove_suffix(kEnd.size());
  for (int part = 0; part < 2; ++part) {
    const auto digits = name.size() - (name.find_last_not_of("0123456789") + 1);
    if (digits == 0 || digits == name.size()) return false;
    name.remove_suffix(digits);
    if (!name.ends_with('.')) return false;
    name.remove_suffix(1);
  }
  return true;
}

void removeIfUnlocked(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return;
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
      ::flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    ::unlink(path.c_str());
  ::close(descriptor);
}

}  // namespace

void removeAbandonedTemporaries(const std::filesystem::path& directory, std::string_view prefix) {
  std::error_code unreadable;
  const std::string begin = temporaryStem(prefix);
  for (const auto& name : detail::namesIn(directory, unreadable))
    if (name.starts_with(begin) && endsAsTemporary(name)) removeIfUnlocked(directory / name);
}

std::filesystem::path followLinks(const std::filesystem::path& path) {
  std::filesystem::path file = path;
  std::error_code problem;
  for (int links = 0; links < kMostLinks && std::filesystem::is_symlink(file, problem); ++links) {
    if (!isTrusted(file))
      throw FileError(path, fmt::format("cannot be used: {} is a symbolic link of another user",
                                        file == path ? "it" : file.string()));
    const auto target = std::filesystem::read_symlink(file, problem);
    if (problem) break;
    file = target.is_absolute() ? target : directoryOf(file) / target;
  }
  return file;
}

AtomicFile::AtomicFile(std::filesystem::path path) : AtomicFile(std::move(path), Temporary::Named) {}

AtomicFile::AtomicFile(std::filesystem::path path, Temporary kind)
    : path_(std::move(path)), target_(followLinks(path_)) {
  struct stat existing {};
  if (path_.empty()) fail("cannot be written", ENOENT);
  // The link of /dev/stdout to a pipe names no file.
  if (::stat(path_.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode) && !S_ISDIR(existing.st_mode))
    throw FileError(path_, kNotRegular);
  const bool exists = ::stat(target_.c_str(), &existing) == 0;
  if (!exists && errno != ENOENT) fail("cannot be written", errno);
  if (exists && S_ISDIR(existing.st_mode)) fail("cannot be written", EISDIR);
  if (exists && ::faccessat(AT_FDCWD, target_.c_str(), W_OK, AT_EACCESS) != 0)
    fail("cannot be written", errno);
  if (kind == Temporary::Unnamed)
    openUnnamed();
  else
    openTemporary();
  // A replaced file keeps its permissions if the file system allows it.
  if (exists) ::fchmod(descriptor_, existing.st_mode & 07777);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::probe(const std::filesystem::path& path, std::string_view bytes) {
  AtomicFile(path, Temporary::Unnamed).write(bytes);
}

/// Where the file system or the kernel has no files without names, the name is removed at once.
void AtomicFile::openUnnamed() {
  descriptor_ = uninterrupted([&] {
    return ::open(directoryOf(target_).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, kModeOfNewFiles);
  });
  if (descriptor_ >= 0) return;
  openTemporary();
  ::unlink(temporary_.c_str());
  temporary_.clear();
}

void AtomicFile::openTemporary() {
  const std::string targetName = target_.filename().string(), stem = temporaryStem(targetName);
  removeAbandonedTemporaries(directoryOf(target_), targetName);
  for (int i = 0; i < kNamesToTry; ++i) {
    auto candidate = directoryOf(target_) / fmt::format("{}.{}.{}.tmp", stem, ::getpid(), i);
    descriptor_ = uninterrupted(
        [&] { return ::open(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kModeOfNewFiles); });
    if (descriptor_ >= 0 && holdsLock(descriptor_)) {
      temporary_ = std::move(candidate);
      return;
    }
    if (descriptor_ < 0 && errno != EEXIST) break;
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));  // another process removed it as abandoned
  }
  fail("cannot be written", errno);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = uninterrupted([&] { return ::write(descriptor_, bytes.data(), bytes.size()); });
    if (written < 0) fail("could not be written", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (uninterrupted([&] { return ::fsync(descriptor_); }) != 0) fail("could not be written", errno);
  const Directory directory(directoryOf(target_));  // open it first: little can fail after the renaming
  if (!directory.open()) fail("could not be replaced, as its directory cannot be read", errno);
  // Rename the file while it is locked, so that no other process removes it under its temporary name.
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("could not be replaced", errno);
  temporary_.clear();
  ::close(std::exchange(descriptor_, -1));  // after fsync, close reports no new error
  if (!directory.sync()) fail("was written, but its directory could not be synced to the disk", errno);
}

void AtomicFile::fail(std::string_view what, int errorNumber) const {
  throw FileError(path_, fmt::format("{}: {}", what, std::generic_category().message(errorNumber)));
}

void writeFileAtomically(const std::filesystem::path& path, std::span<const std::byte> contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

void writeFileAtomically(const std::filesystem::path& path, std::string_view contents) {
  writeFileAtomically(path, std::as_bytes(std::span(contents)));
}

}  // namespace muster
