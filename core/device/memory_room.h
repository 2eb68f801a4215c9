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

/// Bytes of one part of a program for which it is worth to look whether there is room.
inline constexpr double kLargeMemory = 1 << 20;

/// Refuses so many bytes where there is no room for them, before the kernel ends the process. Below
/// kLargeMemory it does not look.
/// @param what  as in "network: its parameters take".  @param advice  the end of the error.
/// @throws OutOfMemory.
void requireMemoryRoom(double bytes, std::string_view what, std::string_view advice,
                       const std::string& root = "/");

}  // namespace muster
