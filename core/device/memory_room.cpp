#include "muster/core/device/memory_room.h"

#include <fmt/format.h>

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

std::int64_t freeSwap(const std::string& root) {
  std::ifstream in(root + "/proc/meminfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("SwapFree:")) return std::strtoll(line.c_str() + 9, nullptr, 10) * 1024;
  return 0;
}

/// The memory that is left, less the hundredth of the limit that stays free.
double withoutReserve(const MemoryRoom& room) {
  return static_cast<double>(room.left) - static_cast<double>(room.limit) / 100;
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

}  // namespace

std::optional<MemoryRoom> memoryRoom(const std::filesystem::path& root) {
  const std::string& top = root.native();
  std::optional<MemoryRoom> tightest;
  const auto swap = freeSwap(top);
  using Version = detail::ControlGroupVersion;
  detail::forEachControlGroup(top, "memory", [&](const std::string& group, Version version) {
    const auto room = version == Version::Two ? roomOfV2(group, swap) : roomOfV1(group, swap);
    if (room && (!tightest || room->left < tightest->left)) tightest = room;
  });
  return tightest;
}

std::optional<MemoryRoom> memoryRoomFor(double bytes, const std::string& root) {
  const auto room = memoryRoom(root);
#ifdef __GLIBC__
  if (room && bytes > withoutReserve(*room) && ::malloc_trim(0) != 0) return memoryRoom(root);
#endif
  return room;
}

void requireMemoryRoom(double bytes, std::string_view what, std::string_view advice,
                       const std::string& root) {
  if (bytes < kLargeMemory) return;
  const auto room = memoryRoomFor(bytes, root);
  if (!room || bytes <= withoutReserve(*room)) return;
  const auto megabytes = [](double count) { return fmt::format("{:.1f} MB", count / 1e6); };
  throw OutOfMemory(fmt::format(
      "{} {}, but of the {} that this process may use (cgroup) {} are left besides a hundredth that stays "
      "free; {}",
      what, megabytes(bytes), megabytes(static_cast<double>(room->limit)),
      megabytes(std::max(0.0, withoutReserve(*room))), advice));
}

}  // namespace muster
