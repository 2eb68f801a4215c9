#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <system_error>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/safetensors_header.h"
#include "muster/core/io/safetensors.h"

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // the limit of the format's own library

/// A file open for reading; every failure is a FileError.
class Source {
 public:
  explicit Source(const std::filesystem::path& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) refuse("cannot be read: {}", std::generic_category().message(errno));
    struct stat status {};
    if (::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) {
      size_ = static_cast<std::uint64_t>(status.st_size);
      return;
    }
    ::close(descriptor_);
    refuse("cannot be read: it is not a regular file");
  }
  ~Source() { ::close(descriptor_); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  std::uint64_t size() const { return size_; }

  void read(void* target, std::uint64_t bytes) {
    auto* to = static_cast<std::byte*>(target);
    while (bytes > 0) {
      const ssize_t got = ::read(descriptor_, to, bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) refuse("cannot be read: {}", std::generic_category().message(errno));
      if (got == 0) refuse("ended while it was read");
      to += got;
      bytes -= static_cast<std::uint64_t>(got);
    }
  }

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    throw FileError(path_, fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  const std::filesystem::path& path_;
  int descriptor_;
  std::uint64_t size_ = 0;
};

std::string readHeader(Source& file) {
  if (file.size() < kLengthBytes)
    file.refuse("is not a safetensors file: {} bytes are too short", file.size());
  std::uint64_t length = 0;
  file.read(&length, kLengthBytes);
  if (length > kMostHeaderBytes || length > file.size() - kLengthBytes)
    file.refuse("is not a whole safetensors file: its header of {} bytes does not fit a file of {} bytes",
                length, file.size());
  std::string header(length, '\0');
  file.read(header.data(), length);
  return header;
}

}  // namespace

const Tensor* Safetensors::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &Entry::name);
  return found == tensors.end() ? nullptr : &found->values;
}

Safetensors readSafetensors(const std::filesystem::path& path) {
  Source file(path);
  const std::string text = readHeader(file);
  auto header = detail::parseSafetensorsHeader(text, file.size() - kLengthBytes - text.size(), path);
  Safetensors contents;
  contents.metadata = std::move(header.metadata);
  for (auto& entry : header.tensors) {
    Tensor tensor = Tensor::empty(entry.shape, entry.dtype);
    file.read(tensor.raw(), entry.end - entry.begin);
    contents.add(std::move(entry.name), std::move(tensor));
  }
  return contents;
}

}  // namespace muster
