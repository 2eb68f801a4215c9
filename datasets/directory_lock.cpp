#include "muster/datasets/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/io/detail/uninterrupted.h"

namespace muster {
namespace {

/// Waits for the lock. @return 0, or the error number.
int lockWaiting(int descriptor, const std::filesystem::path& directory) {
  if (detail::uninterrupted([&] { return flock(descriptor, LOCK_EX | LOCK_NB); }) == 0) return 0;
  if (errno != EWOULDBLOCK) return errno;
  logInfo("waiting for another process that puts files into {}", directory.string());
  return detail::uninterrupted([&] { return flock(descriptor, LOCK_EX); }) == 0 ? 0 : errno;
}

}  // namespace

DirectoryLock::DirectoryLock(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw FileError(directory, "the directory cannot be made: " + error.message());
  const auto path = directory / ".lock";
  // Each lock opens its own descriptor, so threads of one process exclude each other too.
  descriptor_ = detail::uninterrupted([&] { return open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666); });
  const int reason = descriptor_ < 0 ? errno : lockWaiting(descriptor_, directory);
  if (reason == 0) return;
  if (descriptor_ >= 0) close(descriptor_);
  throw FileError(path, "cannot be locked: " + std::generic_category().message(reason));
}

DirectoryLock::~DirectoryLock() {
  close(descriptor_);
}

}  // namespace muster
