#include "muster/datasets/directory_lock.h"

#include <cerrno>
#include <system_error>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"

namespace muster {

DirectoryLock::DirectoryLock(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw FileError(directory, "the directory cannot be made: " + error.message());
  file_.emplace(directory / ".lock");
  int reason = file_->tryLock();
  if (reason == EWOULDBLOCK) {
    logInfo("waiting for another process that puts files into {}", directory.string());
    reason = file_->lock();
  }
  if (reason != 0)
    throw FileError(file_->path(), "cannot be locked: " + std::generic_category().message(reason));
}

}  // namespace muster
