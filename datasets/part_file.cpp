#include "muster/datasets/part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"

namespace muster {
namespace {

std::filesystem::path partOf(std::filesystem::path target) {
  return target += ".part";
}

/// Calls again what a signal broke off.
template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// So that the new name survives a power cut; where a file system cannot do it, the name is merely late.
void syncDirectory(const std::filesystem::path& directory) {
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

}  // namespace

PartFile::PartFile(const std::filesystem::path& target) : target_(target), path_(partOf(target)) {
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(errno);
}

PartFile::~PartFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(path_.c_str());
}

void PartFile::write(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const auto written = uninterrupted([&] { return ::write(descriptor_, bytes, size); });
    if (written < 0) fail(errno);
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
}

void PartFile::clear() {
  if (ftruncate(descriptor_, 0) != 0 || lseek(descriptor_, 0, SEEK_SET) != 0) fail(errno);
}

void PartFile::commit() {
  if (uninterrupted([&] { return fsync(descriptor_); }) != 0) fail(errno);
  if (rename(path_.c_str(), target_.c_str()) != 0) fail(errno);
  close(descriptor_);
  descriptor_ = -1;
  syncDirectory(target_.parent_path());
}

void PartFile::fail(int error) const {
  throw FileError(path_, fmt::format("cannot be written: {}", std::strerror(error)));
}

DirectoryLock::DirectoryLock(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw FileError(directory, "the directory cannot be made: " + error.message());
  const auto path = directory / ".lock";
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ >= 0 && flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  if (descriptor_ >= 0 && errno == EWOULDBLOCK) {
    logInfo("waiting for another process that puts files into {}", directory.string());
    if (uninterrupted([&] { return flock(descriptor_, LOCK_EX); }) == 0) return;
  }
  const int reason = errno;
  if (descriptor_ >= 0) close(descriptor_);
  throw FileError(path, fmt::format("cannot be locked: {}", std::strerror(reason)));
}

DirectoryLock::~DirectoryLock() {
  close(descriptor_);
}

}  // namespace muster
