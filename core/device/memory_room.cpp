#include "muster/core/device/memory_room.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "muster/core/base/error.h"
#include "muster/core/device/detail/control_group.h"

namespace muster {
namespace {

/// A larger limit of a version 1 group means "no limit".
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

/// The number in a file; nothing for the word "max".
std::optional<std::int64_t> numberIn(const std::string& file) {
  std::ifstream in(file);
  std::int64_t number = 0;
  if (in >> number && number >= 0) return number;
  return {};
}

/// The sum of the numbers on the lines "name number" with one of these names.
std::int64_t sumIn(const std::string& file, std::initializer_list<std::string_view> names) {
  std::ifstream in(file);
  std::string name;
  std::int64_t number = 0, sum = 0;
  while (in >> name >> number)
    if (std::ranges::find(names, name) != names.end()) sum += number;
  return sum;
}

/// The number after the words that begin a line of a file; nothing if there is no such line or number.
std::optional<std::int64_t> numberAfter(const std::string& file, std::string_view words) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(words)) {
      const char* const begin = line.c_str() + words.size();
      char* end = nullptr;
      const auto number = std::strtoll(begin, &end, 10);
      if (end != begin && number >= 0) return number;
      return {};
    }
  return {};
}

/// A number of /proc/meminfo, in bytes; 0 if it is not there.
std::int64_t memoryOf(const std::string& root, std::string_view words) {
  return numberAfter(root + "/proc/meminfo", words).value_or(0) * 1024;
}

/// What this process has in memory: bytes that files back or that are shared, and all bytes.
struct Resident {
  std::int64_t shared = 0, all = 0;
};
Resident residentOf(const std::string& root) {
  std::ifstream in(root + "/proc/self/statm");
  std::int64_t size = 0, resident = 0, shared = 0;
  if (!(in >> size >> resident >> shared)) return {};
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  return {.shared = shared * page, .all = resident * page};
}

std::string megabytes(double bytes) {
  return fmt::format("{:.1f} MB", bytes / 1e6);
}

MemoryRoom roomIn(std::int64_t limit, std::int64_t left) {
  return {.limit = limit, .left = left, .reserve = limit / 100, .name = "cgroup"};
}

std::optional<MemoryRoom> roomOfV2(const std::string& group, std::int64_t swap) {
  const auto limit = numberIn(group + "/memory.max"), used = numberIn(group + "/memory.current");
  if (!limit || !used) return {};
  const auto files = sumIn(group + "/memory.stat", {"active_file", "inactive_file", "slab_reclaimable"});
  if (const auto most = numberIn(group + "/memory.swap.max"))
    swap = std::min(swap,
                    std::max<std::int64_t>(0, *most - numberIn(group + "/memory.swap.current").value_or(0)));
  return roomIn(*limit, *limit - std::max<std::int64_t>(0, *used - files) + swap);
}

std::optional<MemoryRoom> roomOfV1(const std::string& group, std::int64_t swap) {
  const auto limit = numberIn(group + "/memory.limit_in_bytes"),
             used = numberIn(group + "/memory.usage_in_bytes");
  if (!limit || !used || *limit > kNoLimit) return {};
  const auto files = sumIn(group + "/memory.stat", {"total_active_file", "total_inactive_file"});
  return roomIn(*limit, *limit - std::max<std::int64_t>(0, *used - files) + swap);
}

}  // namespace

std::optional<MemoryRoom> memoryRoom(const std::filesystem::path& root) {
  const std::string& top = root.native();
  std::optional<MemoryRoom> tightest;
  const auto add = [&](const std::optional<MemoryRoom>& room) {
    if (room && (!tightest || room->usable() < tightest->usable())) tightest = room;
  };
  const auto swap = memoryOf(top, "SwapFree:");
  using Version = detail::ControlGroupVersion;
  detail::forEachControlGroup(top, "memory", [&](const std::string& group, Version version) {
    add(version == Version::Two ? roomOfV2(group, swap) : roomOfV1(group, swap));
  });
  const auto resident = residentOf(top);
  const auto limitTo = [&](std::int64_t limit, std::int64_t used, std::string_view name) {
    add(MemoryRoom{.limit = limit, .left = limit - used, .name = name});
  };
  if (const auto memory = memoryOf(top, "MemTotal:"); memory > 0)
    limitTo(memory + memoryOf(top, "SwapTotal:"), resident.all - resident.shared,
            "the machine's memory and swap space");
  const std::string limits = top + "/proc/self/limits";
  if (const auto most = numberAfter(limits, "Max address space")) limitTo(*most, resident.all, "ulimit -v");
  if (const auto most = numberAfter(limits, "Max data size"))
    limitTo(*most, resident.all - resident.shared, "ulimit -d");
  return tightest;
}

std::string describe(const MemoryRoom& room) {
  return fmt::format("of the {} that this process may use ({}) {} are left",
                     megabytes(static_cast<double>(room.limit)), room.name,
                     megabytes(static_cast<double>(std::max<std::int64_t>(0, room.left))));
}

std::optional<MemoryRoom> memoryRoomFor(double bytes, const std::string& root) {
  const auto room = memoryRoom(root);
#ifdef __GLIBC__
  if (room && bytes > static_cast<double>(room->usable()) && ::malloc_trim(0) != 0) return memoryRoom(root);
#endif
  return room;
}

void requireMemoryRoom(double bytes, std::string_view what, std::string_view advice,
                       const std::string& root) {
  if (bytes < kLargeMemory) return;
  const auto room = memoryRoomFor(bytes, root);
  if (!room || bytes <= static_cast<double>(room->usable())) return;
  MemoryRoom usable = *room;
  usable.left = room->usable();
  throw OutOfMemory(fmt::format("{} {}, but {}{}; {}", what, megabytes(bytes), describe(usable),
                                room->reserve > 0 ? " besides a hundredth that stays free" : "", advice));
}

}  // namespace muster
