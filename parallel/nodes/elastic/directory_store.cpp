#include "muster/parallel/nodes/elastic/directory_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "muster/core/io/detail/directory_names.h"
#include "muster/core/io/detail/uninterrupted.h"
#include "muster/parallel/nodes/node_transport.h"

namespace muster {

using detail::uninterrupted;

namespace {

/// The end of the names of files that are not complete yet.
constexpr std::string_view kPart = ".part";
constexpr int kAttempts = 100;
constexpr mode_t kModeOfNewFiles = 0666;  // restricted by the process's umask

std::error_code lastError() {
  return {errno, std::generic_category()};
}

/// @param what  what cannot be done with the path, as in "written".
[[noreturn]] void failInStore(const std::filesystem::path& path, std::string_view what,
                              const std::error_code& problem) {
  throw NodeFailure(fmt::format("the store: {} cannot be {}: {}", path.string(), what, problem.message()));
}

/// Creates a file with this text. Does not sync it, because the texts are of no use after a power cut.
std::error_code writeText(const std::filesystem::path& path, std::string_view text) {
  const int descriptor = uninterrupted(
      [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kModeOfNewFiles); });
  if (descriptor < 0) return lastError();
  std::error_code problem;
  while (!problem && !text.empty()) {
    const ssize_t written = uninterrupted([&] { return ::write(descriptor, text.data(), text.size()); });
    if (written < 0)
      problem = lastError();
    else
      text.remove_prefix(static_cast<std::size_t>(written));
  }
  // A network file system may report only here that the disk is full. Linux closes the file in any case.
  if (::close(descriptor) != 0 && errno != EINTR && !problem) problem = lastError();
  return problem;
}

/// Reads a file. @param text  has the size of the longest text; is cut to the bytes read.
std::error_code readText(const std::filesystem::path& path, std::string& text) {
  std::size_t size = 0;
  std::error_code problem;
  const int descriptor =
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (descriptor < 0) problem = lastError();
  while (!problem && size < text.size()) {
    const ssize_t got =
        uninterrupted([&] { return ::read(descriptor, text.data() + size, text.size() - size); });
    if (got < 0) problem = lastError();
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (descriptor >= 0) ::close(descriptor);
  text.resize(size);
  return problem;
}

}  // namespace

DirectoryStore::DirectoryStore(std::filesystem::path directory)
    : directory_(std::move(directory)), number_(drawnNumber()) {
  std::error_code problem, ignored;
  std::filesystem::create_directories(directory_, problem);
  if (!std::filesystem::is_directory(directory_, ignored))
    throw NodeFailure(fmt::format("the store {} is not a directory and cannot be created: {}",
                                  directory_.string(), problem.message()));
}

/// A complete file gets the name: a rename replaces the file; a hard link can be created by only one process.
/// Repeated if another process has erased the incomplete file meanwhile.
bool DirectoryStore::place(const std::string& name, const std::string& text, bool replace) {
  const auto path = directory_ / name;
  for (int attempt = 1;; ++attempt) {
    const auto part = directory_ / fmt::format("{}.{}-{}{}", name, number_, ++parts_, kPart);
    std::error_code ignored, problem = writeText(part, text);
    const bool written = !problem;
    if (written && replace)
      std::filesystem::rename(part, path, problem);
    else if (written)
      std::filesystem::create_hard_link(part, path, problem);
    if (problem || !replace) std::filesystem::remove(part, ignored);
    if (!problem) return true;
    if (written && !replace && problem == std::errc::file_exists) return false;
    if (!written || problem != std::errc::no_such_file_or_directory || attempt == kAttempts)
      failInStore(path, "written", problem);
  }
}

std::string DirectoryStore::get(const std::string& name) {
  const auto path = directory_ / name;
  for (int attempt = 1;; ++attempt) {
    std::string text(kMostBytes, '\0');
    const auto problem = readText(path, text);
    if (!problem) return text.size() < kMostBytes ? text : std::string();
    if (problem == std::errc::no_such_file_or_directory) return {};
    // NFS loses an open file that another node replaces: read the new one.
    if (problem.value() != ESTALE || attempt == kAttempts) failInStore(path, "read", problem);
  }
}

void DirectoryStore::erase(const std::string& name) {
  std::error_code problem;
  std::filesystem::remove(directory_ / name, problem);
  if (problem) failInStore(directory_ / name, "erased", problem);
}

std::vector<std::string> DirectoryStore::files(const std::string& prefix) const {
  std::error_code problem;
  auto found = detail::namesIn(directory_, problem);
  if (problem) failInStore(directory_, "read", problem);
  std::erase_if(found, [&](const std::string& name) {
    return !name.starts_with(prefix) || name == "." || name == "..";
  });
  return found;
}

std::vector<std::string> DirectoryStore::names(const std::string& prefix) {
  auto found = files(prefix);
  std::erase_if(found, [](const std::string& name) { return name.ends_with(kPart); });
  return found;
}

}  // namespace muster
