#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include "muster/core/base/error.h"
#include "tests/fuzz/target.h"
#include "tests/support/temporary_directory.h"

namespace muster::fuzz {

/// A file in memory whose contents each input replaces.
class FuzzedFile {
 public:
  FuzzedFile() : descriptor_(::memfd_create("input", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw std::runtime_error("cannot make a file in memory");
    path_ = "/proc/self/fd/" + std::to_string(descriptor_);
  }
  ~FuzzedFile() { ::close(descriptor_); }
  FuzzedFile(const FuzzedFile&) = delete;
  FuzzedFile& operator=(const FuzzedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& of(ByteSpan bytes) {
    if (::ftruncate(descriptor_, 0) != 0 ||
        ::pwrite(descriptor_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error("cannot write a file in memory");
    return path_;
  }

 private:
  int descriptor_;
  std::filesystem::path path_;
};

/// What is written to a path, which is in memory, because saving waits for the disk.
template <typename Write>
Bytes writtenBy(const Write& write) {
  const std::filesystem::path path = "/dev/shm/muster-fuzz-" + std::to_string(::getpid());
  write(path);
  Bytes bytes = bytesOf(test::readFile(path));
  std::filesystem::remove(path);
  return bytes;
}

/// Whether a reader accepted its file. Checks that a refusal is a FileError that names the file.
template <typename Read>
bool isRead(const std::filesystem::path& path, const Read& read) {
  try {
    read();
    return true;
  } catch (const FileError& error) {
    expectReadable(error.what());
    expect(error.path() == path, "an error names another file");
    return false;
  }
}

}  // namespace muster::fuzz
