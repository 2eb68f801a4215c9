#include "muster/core/listeners/checkpoint_lock.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "muster/core/base/error.h"
#include "muster/core/base/host_name.h"
#include "muster/core/base/printable_text.h"

namespace muster {
namespace {

constexpr std::size_t kLongestName = 200;  // bytes, so that the lock file's name stays below 255
constexpr int kTries = 100;

/// Writes into the file which process has the lock: "4711 host". A full disk does not matter here.
void sign(const detail::LockFile& file) {
  const auto text = fmt::format("{} {}\n", ::getpid(), hostName());
  if (::ftruncate(file.descriptor(), 0) != 0 ||
      ::pwrite(file.descriptor(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    return;
}

/// For example "process 4711". The owner may not have signed yet.
std::string ownerOf(const detail::LockFile& file) {
  std::array<char, 256> signature{};
  const auto length = ::pread(file.descriptor(), signature.data(), signature.size(), 0);
  const std::string_view text(signature.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  pid_t process = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), process);
  if (error != std::errc() || end == text.data() + text.size() || *end != ' ') return "another process";
  auto host = text.substr(static_cast<std::size_t>(end - text.data()) + 1);
  host = host.substr(0, host.find('\n'));
  if (host != hostName()) return fmt::format("process {} on {}", process, printableText(host));
  return process == ::getpid() ? "another training of this process" : fmt::format("process {}", process);
}

}  // namespace

CheckpointLock::CheckpointLock(const std::filesystem::path& directory, const std::string& baseName) {
  const auto path = directory / fmt::format(".{}.muster-lock", baseName.substr(0, kLongestName));
  for (int i = 0; i < kTries; ++i) {
    file_.emplace(path);
    const int reason = file_->tryLock();
    if (reason == EWOULDBLOCK)
      throw FileError(directory, fmt::format("{} writes checkpoints into this directory; give the training "
                                             "another directory, or wait for the end of the other one",
                                             ownerOf(*file_)));
    if (reason == 0 && file_->hasName()) {
      sign(*file_);
      return;
    }
    file_.reset();
    if (reason == 0) continue;  // its last owner has removed the file meanwhile
    if (reason == EOPNOTSUPP || reason == ENOSYS) ::unlink(path.c_str());  // no process can lock it
    return;
  }
  throw FileError(directory, fmt::format("{} appears and disappears", path.filename().string()));
}

CheckpointLock::~CheckpointLock() {
  if (file_) ::unlink(file_->path().c_str());  // while it is locked, so that it is not another one's
}

}  // namespace muster
