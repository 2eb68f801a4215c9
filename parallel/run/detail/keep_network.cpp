#include "muster/parallel/run/detail/keep_network.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/is_divergence.h"
#include "muster/core/base/log.h"

namespace muster::detail {
namespace {

/// The directory, or the nearest one above it that exists.
std::filesystem::path existing(std::filesystem::path directory) {
  std::error_code problem;
  directory = std::filesystem::absolute(directory, problem);
  while (!std::filesystem::exists(directory, problem) && directory.has_relative_path())
    directory = directory.parent_path();
  return directory;
}

/// Where a file may be kept that cannot be written where the user wants it.
std::vector<std::filesystem::path> otherDirectories() {
  std::vector<std::filesystem::path> all;
  std::error_code missing;
  all.push_back(std::filesystem::temp_directory_path(missing));
  if (const char* const home = std::getenv("HOME")) all.emplace_back(home);
  for (const char* directory : {"/var/tmp", "/tmp", "/dev/shm"}) all.emplace_back(directory);
  std::erase_if(all, [](const auto& directory) { return !directory.is_absolute(); });
  return all;
}

/// @return what happened, to be read after "and".
std::string keepBeside(const Beside& beside) try {
  if (beside.file.empty() || !beside.write) return "nothing was saved";
  auto file = beside.file;
  file.replace_filename(fmt::format("{}-diverged{}", file.stem().string(), file.extension().string()));
  bool written = false;
  writeHereOrElsewhere(file, [&](const std::filesystem::path& path) { written = beside.write(path); });
  if (!written) return "nothing was saved";
  return fmt::format("the network is saved as {} instead of {}", file.string(), beside.file.string());
} catch (...) {
  return fmt::format("the network could not be saved: {}", describe(std::current_exception()));
}

bool isWritten(const std::function<void(const std::filesystem::path&)>& write,
               const std::filesystem::path& file) {
  std::error_code unreachable;
  if (std::filesystem::exists(file, unreachable)) return false;
  try {
    write(file);
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void trainAndSave(const std::function<void()>& train, const std::function<void(bool failed)>& save,
                  const std::string& setting, const Beside& beside) {
  std::exception_ptr failure;
  try {
    train();
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    if (!failure || !isDivergence(failure)) save(failure != nullptr);
  } catch (...) {
    const auto problem = std::current_exception();
    if (failure && !isDivergence(problem))
      log(LogLevel::Error, fmt::format("what was trained could not be saved: {}", describe(problem)));
    else
      failure = problem;
  }
  if (!failure) return;
  if (isDivergence(failure))
    throw NonFiniteScore(
        fmt::format("{}; this was with {}, and {}", describe(failure), setting, keepBeside(beside)));
  std::rethrow_exception(failure);
}

void writeHereOrElsewhere(const std::filesystem::path& path,
                          const std::function<void(const std::filesystem::path&)>& write) {
  try {
    return write(path);
  } catch (const FileError& error) {
    const auto name = fmt::format("{}-{}{}", path.stem().string(), ::getpid(), path.extension().string());
    for (const auto& directory : otherDirectories())
      if (const auto other = directory / name; isWritten(write, other))
        throw Error(fmt::format("{}; saved as {} instead", error.what(), other.string()));
    throw;  // names the file that the user named
  }
}

std::int64_t savedBytes(Model& model) {
  std::int64_t bytes = 0;
  for (const auto* block : model.state())
    if (block->kind != BlockKind::Gradients) bytes += static_cast<std::int64_t>(block->values.bytes());
  return bytes;
}

void requireDiskRoom(const std::filesystem::path& path, std::int64_t bytes) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  const bool onDisk = type == std::filesystem::file_type::not_found ||
                      type == std::filesystem::file_type::regular ||
                      type == std::filesystem::file_type::directory;
  if (path.empty() || !onDisk) return;
  struct statvfs disk {};
  // A file system of 0 blocks does not report its size.
  if (::statvfs(existing(path).c_str(), &disk) != 0 || disk.f_blocks == 0) return;
  const double left = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (static_cast<double>(bytes) <= left) return;
  throw FileError(path, fmt::format("the network takes {:.1f} MB, and its disk has {:.1f} MB left",
                                    static_cast<double>(bytes) / 1e6, left / 1e6));
}

}  // namespace muster::detail
