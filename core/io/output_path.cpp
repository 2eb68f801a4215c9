#include "muster/core/io/output_path.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "muster/core/base/error.h"
#include "muster/core/io/atomic_file.h"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPage = 4096;

/// The absolute path; links are followed, also to a file that does not exist.
fs::path resolved(const fs::path& path) {
  std::error_code problem;
  const fs::path file = fs::absolute(followLinks(path), problem);
  auto found = fs::weakly_canonical(file, problem);
  if (problem) found = file.lexically_normal();
  return found.has_filename() ? found : found.parent_path();  // "a/" is "a"
}

/// A page, because on a full disk creating an empty file still works.
void writeAPage(const fs::path& file) {
  AtomicFile::probe(file, std::string(kPage, '\0'));
}

}  // namespace

void checkOutputFile(const fs::path& file) {
  if (file.empty()) return;
  std::error_code unreachable;
  if (fs::is_directory(file, unreachable)) throw FileError(file, "cannot be written: it is a directory");
  const fs::path directory = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (::access((directory / "").c_str(), W_OK | X_OK) != 0)  // "a/": not a directory if it is a file
    throw FileError(
        file, fmt::format("cannot be written: its directory: {}", std::generic_category().message(errno)));
  writeAPage(file);
}

void checkOutputDirectory(const fs::path& directory) {
  if (directory.empty()) return;
  std::error_code unreachable;
  const fs::path whole = fs::absolute(directory);
  fs::path above = whole;  // becomes the nearest existing parent, or `whole` itself
  while (!fs::exists(above, unreachable) && above.has_relative_path()) above = above.parent_path();
  const auto refuse = [&](const fs::path& at, std::string_view why) {
    throw FileError(directory, fmt::format("cannot be made: {}: {}", at.string(), why));
  };
  const int problem = !fs::is_directory(above)                    ? ENOTDIR
                      : ::access(above.c_str(), W_OK | X_OK) != 0 ? errno
                                                                  : 0;
  if (problem != 0 && problem != ENOTDIR && above == whole)
    throw FileError(directory, "cannot be written to: " + std::generic_category().message(problem));
  if (problem != 0) refuse(above, std::generic_category().message(problem));
  const long longest = ::pathconf(above.c_str(), _PC_NAME_MAX);  // -1: unknown
  for (const auto& name : whole.lexically_relative(above))
    if (longest > 0 && name.native().size() > static_cast<std::size_t>(longest))
      refuse(above, std::generic_category().message(ENAMETOOLONG));
  try {
    writeAPage(above / ".muster-can-write");
  } catch (const FileError& error) {
    const auto why = std::string_view(error.what()).substr(error.path().native().size() + 2);
    if (above == whole) throw FileError(directory, fmt::format("a file in it {}", why));
    refuse(above, why);
  }
}

bool isSameFile(const fs::path& one, const fs::path& other) {
  if (one.empty() || other.empty()) return false;
  std::error_code missing;
  if (fs::equivalent(one, other, missing) && !missing) return true;  // also by hard links
  return resolved(one) == resolved(other);
}

bool isInside(const fs::path& path, const fs::path& directory) {
  if (path.empty() || directory.empty()) return false;
  const fs::path inner = resolved(path), outer = resolved(directory);
  return std::ranges::mismatch(outer, inner).in1 == outer.end();
}

}  // namespace muster
