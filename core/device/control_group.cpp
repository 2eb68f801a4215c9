#include "muster/core/device/detail/control_group.h"

#include <algorithm>
#include <fstream>

namespace muster::detail {
namespace {

// Paths are strings here: libstdc++ 12's std::filesystem::path frees memory twice if an allocation fails.

/// Whether a list of words such as "cpu,cpuacct" contains `word`.
bool lists(std::string_view words, std::string_view word) {
  for (;;) {
    const auto comma = words.find(',');
    if (words.substr(0, comma) == word) return true;
    if (comma == words.npos) return false;
    words.remove_prefix(comma + 1);
  }
}

std::optional<double> quotaOf(const std::string& group, ControlGroupVersion version) {
  double quota = 0, period = 0;
  if (version == ControlGroupVersion::Two) {
    std::ifstream file(group + "/cpu.max");  // "max 100000" or "150000 100000"
    file >> quota >> period;
  } else {
    std::ifstream(group + "/cpu.cfs_quota_us") >> quota;  // -1: none
    std::ifstream(group + "/cpu.cfs_period_us") >> period;
  }
  if (quota > 0 && period > 0) return quota / period;
  return {};
}

}  // namespace

void forEachControlGroup(
    const std::string& root, std::string_view controller,
    const std::function<void(const std::string& directory, ControlGroupVersion version)>& f) {
  const auto climb = [&](const std::string& mounted, std::string_view path, ControlGroupVersion version) {
    for (std::string group(path == "/" ? std::string_view() : path);; group.resize(group.rfind('/'))) {
      f(mounted + group, version);
      if (group.find('/') == group.npos) return;
    }
  };
  const std::string mounts = root + "/sys/fs/cgroup";
  std::ifstream in(root + "/proc/self/cgroup");
  // Lines are "0::/path" (version 2) or "4:cpu,cpuacct:/path".
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const auto path = std::string_view(line).substr(second + 1);
    const auto controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (path.empty()) continue;
    if (controllers.empty())
      climb(mounts, path, ControlGroupVersion::Two);
    else if (lists(controllers, controller))
      climb(mounts + "/" + std::string(controller), path, ControlGroupVersion::One);
  }
}

std::optional<double> cpuQuota(const std::string& root) {
  std::optional<double> least;
  forEachControlGroup(root, "cpu", [&](const std::string& group, ControlGroupVersion version) {
    if (const auto quota = quotaOf(group, version)) least = least ? std::min(*least, *quota) : quota;
  });
  return least;
}

}  // namespace muster::detail
