#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/lock_file.h"
#include "muster/core/io/detail/uninterrupted.h"

namespace muster::detail {

LockFile::LockFile(std::filesystem::path path) : path_(std::move(path)) {
  const auto openFor = [&](int access) {
    return uninterrupted(
        [&] { return ::open(path_.c_str(), access | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666); });
  };
  descriptor_ = openFor(O_RDWR);
  // A file that another user's process has left can still be locked.
  if (descriptor_ < 0 && errno == EACCES) descriptor_ = openFor(O_RDONLY);
  if (descriptor_ < 0) throw FileError(path_, "cannot be locked: " + std::generic_category().message(errno));
}

LockFile::~LockFile() {
  ::close(descriptor_);
}

int LockFile::tryLock() const {
  return uninterrupted([&] { return ::flock(descriptor_, LOCK_EX | LOCK_NB); }) == 0 ? 0 : errno;
}

int LockFile::lock() const {
  return uninterrupted([&] { return ::flock(descriptor_, LOCK_EX); }) == 0 ? 0 : errno;
}

bool LockFile::hasName() const {
  struct stat status {};
  return ::fstat(descriptor_, &status) != 0 || status.st_nlink > 0;
}

}  // namespace muster::detail
