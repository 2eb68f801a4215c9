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
    return uninterrupted([&] { return ::open(path_.c_str(), access | O_NOFOLLOW | O_CLOEXEC, 0666); });
  };
  descriptor_ = openFor(O_RDWR | O_CREAT);
  // A file that another user's process has left can still be locked. Without O_CREAT, which Linux refuses for
  // other users' files in shared directories such as /tmp.
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
  struct stat open {};
  struct stat named {};
  if (::fstat(descriptor_, &open) != 0) return true;
  return ::lstat(path_.c_str(), &named) == 0 && named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

}  // namespace muster::detail
