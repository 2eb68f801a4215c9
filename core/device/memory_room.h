#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// A limit on the memory of this process.
struct MemoryRoom {
  std::int64_t limit = 0;    ///< bytes
  std::int64_t left = 0;     ///< of these, as much as this process can have at most
  std::int64_t reserve = 0;  ///< of `left`: stays free for what is too small to check
  std::string_view name;     ///< what limits it, such as "cgroup"

  /// Bytes that checked parts of a program may take.
  std::int64_t usable() const { return left - reserve; }
};

/// The tightest of three kinds of limits, by the bytes that are usable.
///
/// Control groups (cgroup, version 1 or 2, as a container, a batch system or systemd sets them): the kernel
/// ends a process above their limit. What it can write back or drop (file caches) does not count as used;
/// free swap space that the group may use is left, too. A hundredth of the limit is the reserve.
///
/// The machine's memory and swap space, less what this process has that no file backs. What other processes
/// use counts as left: the kernel may swap it out.
///
/// RLIMIT_AS and RLIMIT_DATA (ulimit -v and -d), less what this process has in memory. They limit addresses,
/// of which a process may reserve more than it uses, so an allocation can fail earlier.
///
/// @param root  of the file system, for tests.
/// @return nothing if no limit can be read.
std::optional<MemoryRoom> memoryRoom(const std::filesystem::path& root = "/");

/// "of the 8000.0 MB that this process may use (cgroup) 2000.0 MB are left", for errors.
std::string describe(const MemoryRoom& room);

/// Parts of a program of at least this many bytes are checked.
inline constexpr double kLargeMemory = 1 << 18;

/// The limit of `memoryRoom`. If so many bytes are not usable, memory that was freed, and that the allocator
/// keeps for later, is given back to the kernel first.
std::optional<MemoryRoom> memoryRoomFor(double bytes, const std::string& root = "/");

/// Throws if there is no room for so many bytes, before the kernel kills the process. The reserve is left for
/// what is too small to check, that is for less than kLargeMemory.
/// @param what  as in "network: its parameters take".  @param advice  the end of the error.
/// @throws OutOfMemory.
void requireMemoryRoom(double bytes, std::string_view what, std::string_view advice,
                       const std::string& root = "/");

}  // namespace muster
