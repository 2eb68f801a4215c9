#include "muster/core/listeners/watch/tensorboard/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>

#include <boost/crc.hpp>

#include "muster/core/base/error.h"
#include "muster/core/base/host_name.h"
#include "muster/core/base/log.h"

namespace muster {
namespace {

void appendLittleEndian(std::string& bytes, std::uint64_t number, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>((number >> (8 * i)) & 0xff);
}

std::string recordOf(std::string_view bytes) {
  std::string record;
  record.reserve(bytes.size() + 16);
  appendLittleEndian(record, bytes.size(), 8);
  appendLittleEndian(record, maskedCrc32c(record), 4);
  record += bytes;
  appendLittleEndian(record, maskedCrc32c(bytes), 4);
  return record;
}

/// A unique file name; the host's name distinguishes machines.
std::string newName() {
  static std::atomic<int> number{0};
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  return fmt::format("events.out.tfevents.{:010}.{}.{}.{}", seconds.count(), hostName(), ::getpid(),
                     number++);
}

std::string textOf(int errorNumber) {
  return std::generic_category().message(errorNumber);
}

/// @return 0 or the number of the error.
int writeAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

std::uint32_t maskedCrc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const auto sum = static_cast<std::uint32_t>(crc.checksum());
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8U;
}

EventFile::EventFile(const std::filesystem::path& directory) : path_(directory / newName()) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw FileError(directory, "cannot make this directory: " + error.message());
  do {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) throw FileError(path_, "cannot make this file: " + textOf(errno));
}

EventFile::~EventFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void EventFile::append(std::string_view bytes) {
  if (failed()) return;
  const std::string record = recordOf(bytes);
  const int error = writeAll(descriptor_, record);
  if (error == 0) {
    wholeBytes_ += static_cast<std::int64_t>(record.size());
    return;
  }
  const bool cut = ::ftruncate(descriptor_, wholeBytes_) == 0;
  ::close(descriptor_);
  descriptor_ = -1;
  logWarning("{}: {}; the training continues, and TensorBoard shows what was written before{}",
             path_.string(), textOf(error), cut ? "" : ", but the last record is cut off");
}

}  // namespace muster
