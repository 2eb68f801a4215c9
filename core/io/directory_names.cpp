#include <dirent.h>

#include <cerrno>
#include <memory>

#include "muster/core/io/detail/directory_names.h"

namespace muster::detail {

std::vector<std::string> namesIn(const std::filesystem::path& directory, std::error_code& error) {
  struct Close {
    void operator()(DIR* open) const { ::closedir(open); }
  };
  std::vector<std::string> names;
  const std::unique_ptr<DIR, Close> open(::opendir(directory.c_str()));
  errno = open ? 0 : errno;
  while (const dirent* const entry = open ? ::readdir(open.get()) : nullptr) {
    names.emplace_back(entry->d_name);
    errno = 0;
  }
  error.assign(errno, std::generic_category());
  return names;
}

}  // namespace muster::detail
