#include "muster/core/device/memory_room.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

#include "muster/core/base/error.h"

namespace muster {
namespace {

// Paths are texts here: std::filesystem::path of libstdc++ 12 frees memory twice where it runs out of it.

/// Above this a limit of version 1 means that there is none.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

/// The number in a file; nothing for the word "max".
std::optional<std::int64_t> numberIn(const std::string& file) {
  std::ifstream in(file);
  std::int64_t number = 0;
  if (in >> number && number >= 0) return number;
  return {};
}

/// The sum of some lines "name number", in bytes.
std::int64_t sumIn(const std::string& file, std::initializer_list<std::string_view> names) {
  std::ifstream in(file);
  std::string name;
  std::int64_t number = 0, sum = 0;
  while (in >> name >> number)
    if (std::ranges::find(names, name) != names.end()) sum += number;
  return sum;
}

std::int64_t freeSwap(const std::string& root) {
  std::ifstream in(root + "/proc/meminfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("SwapFree:")) return std::strtoll(line.c_str() + 9, nullptr, 10) * 1024;
  return 0;
}

std::optional<MemoryRoom> roomOfV2(const std::string& group, std::int64_t swap) {
  const auto limit = numberIn(group + "/memory.max"), used = numberIn(group + "/memory.current");
  if (!limit || !used) return {};
  const auto files = sumIn(group + "/memory.stat", {"active_file", "inactive_file", "slab_reclaimable"});
  if (const auto most = numberIn(group + "/memory.swap.max"))
    swap = std::min(swap,
                    std::max<std::int64_t>(0, *most - numberIn(group + "/memory.swap.current").value_or(0)));
  return MemoryRoom{*limit, *limit - std::max<std::int64_t>(0, *used - files) + swap};
}

std::optional<MemoryRoom> roomOfV1(const std::string& group, std::int64_t swap) {
  const auto limit = numberIn(group + "/memory.limit_in_bytes"),
             used = numberIn(group + "/memory.usage_in_bytes");
  if (!limit || !used || *limit > kNoLimit) return {};
  const auto files = sumIn(group + "/memory.stat", {"total_active_file", "total_inactive_file"});
  return MemoryRoom{*limit, *limit - std::max<std::int64_t>(0, *used - files) + swap};
}

/// The path in a line of /proc/self/cgroup: "0::/path" (version 2), or "4:memory:/path"; "" for other lines.
std::string_view pathIn(std::string_view line, std::string_view controller) {
  const auto first = line.find(':'), second = line.find(':', first + 1);
  if (first == line.npos || second == line.npos) return {};
  return line.substr(first + 1, second - first - 1) == controller ? line.substr(second + 1)
                                                                  : std::string_view();
}

}  // namespace

std::optional<MemoryRoom> memoryRoom(const std::filesystem::path& root) {
  const std::string& top = root.native();
  std::optional<MemoryRoom> tightest;
  const auto swap = freeSwap(top);
  const auto look = [&](const char* mounted, std::string_view path, auto roomOf) {
    if (path.empty()) return;
    // In a container the path may be that of its host: then the files of the container are at the top.
    for (std::string group(path == "/" ? std::string_view() : path);; group.resize(group.rfind('/'))) {
      const auto room = roomOf(top + mounted + group, swap);
      if (room && (!tightest || room->left < tightest->left)) tightest = room;
      if (group.find('/') == group.npos) return;
    }
  };
  std::ifstream in(top + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    look("/sys/fs/cgroup", pathIn(line, ""), roomOfV2);
    look("/sys/fs/cgroup/memory", pathIn(line, "memory"), roomOfV1);
  }
  return tightest;
}

void requireMemoryRoom(double bytes, std::string_view what, std::string_view advice,
                       const std::string& root) {
  if (bytes < kLargeMemory) return;
  const auto room = memoryRoom(root);
  if (!room || bytes <= static_cast<double>(room->left)) return;
  const auto megabytes = [](double count) { return fmt::format("{:.1f} MB", count / 1e6); };
  throw OutOfMemory(fmt::format("{} {}, but of the {} that this process may use (cgroup) {} are left; {}",
                                what, megabytes(bytes), megabytes(static_cast<double>(room->limit)),
                                megabytes(std::max(0.0, static_cast<double>(room->left))), advice));
}

}  // namespace muster
