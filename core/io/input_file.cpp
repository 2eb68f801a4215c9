#include "muster/core/io/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/uninterrupted.h"

namespace muster {
namespace {

std::string cannotBeRead(const std::string& why) {
  return "cannot be read: " + why;
}

std::string errorText(int number) {
  return std::generic_category().message(number);
}

/// The size of an open regular file. @throws FileError.
std::uint64_t sizeOfRegular(int descriptor, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) throw FileError(path, cannotBeRead(errorText(errno)));
  if (S_ISDIR(status.st_mode)) throw FileError(path, cannotBeRead("it is a directory"));
  if (!S_ISREG(status.st_mode)) throw FileError(path, cannotBeRead("it is not a regular file"));
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

InputFile::InputFile(std::filesystem::path path)
    : path_(std::move(path)), descriptor_(detail::uninterrupted([this] {
        return ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
      })) {
  if (descriptor_ < 0) throw FileError(path_, cannotBeRead(errorText(errno)));
  try {
    size_ = sizeOfRegular(descriptor_, path_);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

InputFile::~InputFile() {
  ::close(descriptor_);
}

void InputFile::read(void* target, std::uint64_t bytes) {
  auto* to = static_cast<std::byte*>(target);
  while (bytes > 0) {
    const ssize_t got = detail::uninterrupted([&] { return ::read(descriptor_, to, bytes); });
    if (got < 0) throw FileError(path_, cannotBeRead(errorText(errno)));
    if (got == 0) throw FileError(path_, "ended while it was read");
    to += got;
    bytes -= static_cast<std::uint64_t>(got);
  }
}

std::filesystem::file_type fileTypeOf(const std::filesystem::path& path) {
  std::error_code problem;
  const auto type = std::filesystem::status(path, problem).type();
  if (type == std::filesystem::file_type::none) throw FileError(path, cannotBeRead(problem.message()));
  return type;
}

}  // namespace muster
