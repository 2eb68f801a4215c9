#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// A limit on the memory of this process and of those beside it, above which the kernel ends one of them.
struct MemoryRoom {
  std::int64_t limit = 0;  ///< bytes
  std::int64_t left =
      0;  ///< of these; what the kernel can write back or drop (file caches) does not count as used
};

/// The tightest limit of this process's control group (cgroup, version 1 or 2, as a container, a batch system
/// or systemd sets it) and those above it. Free swap space that it may use is left, too.
/// @param root  of the file system, for tests.
/// @return nothing if there is no limit, or none can be read.
std::optional<MemoryRoom> memoryRoom(const std::filesystem::path& root = "/");

/// Parts of a program of at least this many bytes are checked.
inline constexpr double kLargeMemory = 1 << 18;

/// As above; but if there is no room for so many bytes and a hundredth of the limit, memory that was freed,
/// and that the allocator keeps for later, is given back to the kernel first.
std::optional<MemoryRoom> memoryRoomFor(double bytes, const std::string& root = "/");

/// Throws if there is no room for so many bytes, before the kernel kills the process. A hundredth of the
/// limit is left for what is too small to check, that is for less than kLargeMemory.
/// @param what  as in "network: its parameters take".  @param advice  the end of the error.
/// @throws OutOfMemory.
void requireMemoryRoom(double bytes, std::string_view what, std::string_view advice,
                       const std::string& root = "/");

}  // namespace muster
