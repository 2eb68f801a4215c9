#include "muster/core/device/memory_room.h"

#include <malloc.h>
#include <unistd.h>

#include "tests/core/device/fake_root.h"
#include "tests/support/child_process.h"
#include "tests/support/skip.h"
#include "tests/support/test.h"

namespace muster {

using namespace test;

namespace {

struct MemoryRoot : test::FakeRoot {
  std::optional<MemoryRoom> room() const { return memoryRoom(path()); }
  std::int64_t left() const { return room() ? room()->left : -1; }
};

}  // namespace

TEST_CASE("there is no memory limit if no file can be read or the file says \"max\"") {
  MemoryRoot root;
  CHECK_FALSE(root.room());
  root.write("proc/self/cgroup", "0::/user/job\n");
  CHECK_FALSE(root.room());
  root.write("sys/fs/cgroup/user/job/memory.max", "max\n");
  root.write("sys/fs/cgroup/user/job/memory.current", "5000\n");
  CHECK_FALSE(root.room());
}

TEST_CASE(
    "cgroup version 2: the tightest limit of all groups counts, without memory that the kernel can reclaim") {
  MemoryRoot root;
  root.write("proc/self/cgroup", "0::/user/job\n");
  root.write("sys/fs/cgroup/user/job/memory.max", "10000\n");
  root.write("sys/fs/cgroup/user/job/memory.current", "4000\n");
  CHECK(root.left() == 6000);
  root.write("sys/fs/cgroup/user/job/memory.stat",
             "anon 2100\nactive_file 900\ninactive_file 600\nfile 1500\nslab_reclaimable 400\nslab 500\n");
  CHECK(root.left() == 7900);
  CHECK(root.room()->limit == 10000);
  root.write("sys/fs/cgroup/user/memory.max", "8000\n");
  root.write("sys/fs/cgroup/user/memory.current", "7900\n");
  CHECK(root.left() == 100);
  CHECK(root.room()->limit == 8000);
  SUBCASE("free swap is left, too, as much of it as the group may use") {
    root.write("proc/meminfo", "MemTotal: 16 kB\nSwapTotal: 9 kB\nSwapFree: 2 kB\n");
    CHECK(root.left() == 100 + 2048);
    root.write("sys/fs/cgroup/user/memory.swap.max", "700\n");
    root.write("sys/fs/cgroup/user/memory.swap.current", "200\n");
    CHECK(root.left() == 100 + 500);
    root.write("sys/fs/cgroup/user/memory.swap.max", "0\n");
    CHECK(root.left() == 100);
  }
}

TEST_CASE("cgroup version 1 is read, also in a container that sees its own group at the top") {
  MemoryRoot root;
  root.write("proc/self/cgroup", "9:name=systemd:/\n4:memory:/docker/1234\n1:cpu:/\n0::/\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "3000\n");
  CHECK_FALSE(root.room());
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n");
  root.write("sys/fs/cgroup/memory/memory.stat", "cache 9\ntotal_active_file 300\ntotal_inactive_file 200\n");
  CHECK(root.left() == 2500);
  root.write("sys/fs/cgroup/memory/docker/1234/memory.limit_in_bytes", "4000\n");
  root.write("sys/fs/cgroup/memory/docker/1234/memory.usage_in_bytes", "3900\n");
  CHECK(root.left() == 100);
}

TEST_CASE("a group that uses more than its limit has no memory left, which is no error") {
  MemoryRoot root;
  root.write("proc/self/cgroup", "0::/\nbroken\n:\n");
  root.write("sys/fs/cgroup/memory.max", "1000");
  root.write("sys/fs/cgroup/memory.current", "1500");
  CHECK(root.left() == -500);
}

TEST_CASE("the machine's memory and swap space are a limit, less what this process has") {
  MemoryRoot root;
  root.write("proc/meminfo", "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable: 1 kB\nSwapTotal: 24 kB\n");
  CHECK(root.left() == 1 << 20);
  CHECK(root.room()->usable() == 1 << 20);  // what other processes use may be swapped out
  root.write("proc/self/statm", "9 2 1 1 0 2 0\n");
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  CHECK(root.left() == (1 << 20) - page);  // a file backs the other page
  const auto text = thrown<OutOfMemory>(
      [&] { requireMemoryRoom(2e6, "a test takes", "less is enough", root.path().string()); });
  CHECK_MESSAGE(text.starts_with("a test takes 2.0 MB, but of the 1.0 MB that this process may use (the "
                                 "machine's memory and swap space) "),
                text);
  CHECK(text.ends_with(" MB are left; less is enough"));
  root.write("proc/self/cgroup", "0::/\n");
  root.write("sys/fs/cgroup/memory.max", "10000\n");
  root.write("sys/fs/cgroup/memory.current", "4000\n");
  CHECK(root.left() == 6000);
  CHECK(root.room()->name == "cgroup");
  CHECK(root.room()->usable() == 5900);
}

TEST_CASE("ulimit -v and -d are limits, less what this process has in memory") {
  MemoryRoot root;
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  const auto write = [&](const char* data, const char* addresses) {
    root.write("proc/self/limits",
               fmt::format("Limit                     Soft Limit           Hard Limit           Units     \n"
                           "Max file size             17                   unlimited            bytes     \n"
                           "Max data size             {:<20} unlimited            bytes     \n"
                           "Max address space         {:<20} unlimited            bytes     \n",
                           data, addresses));
  };
  root.write("proc/self/statm", "9 2 1 1 0 2 0\n");
  write("unlimited", "unlimited");
  CHECK_FALSE(root.room());
  write("unlimited", "1000000");
  CHECK(root.left() == 1'000'000 - 2 * page);
  CHECK(root.room()->name == "ulimit -v");
  write("900000", "1000000");
  CHECK(root.left() == 900'000 - page);
  CHECK(root.room()->name == "ulimit -d");
  write("0", "1000000");
  CHECK(root.left() == -page);
  for (const char* broken : {"", "Max data size", "Max data size   \n", "Max data size   -5\n"}) {
    root.write("proc/self/limits", broken);
    CHECK_FALSE(root.room());
  }
}

TEST_CASE("before an allocation is refused, memory that the allocator keeps is returned to the system") {
  if (kSanitized) return skip("sanitizers have memory of their own");
  const auto outcome = inChild([] {
    ::mallopt(M_MMAP_THRESHOLD, 1 << 25);  // all comes from the heap,
    ::mallopt(M_TRIM_THRESHOLD, 1 << 30);  // which stays as large as it once was
    MemoryRoot root;
    root.write("proc/self/cgroup", "0::/\n");
    std::filesystem::create_directories(root.path() / "sys/fs/cgroup");
    // The first number there is this process's memory, in pages. They count as bytes here.
    std::filesystem::create_symlink("/proc/self/statm", root.path() / "sys/fs/cgroup/memory.current");
    const auto limit = [&](std::int64_t bytes) {
      root.write("sys/fs/cgroup/memory.max", std::to_string(bytes));
    };
    limit(1'000'000'000);
    const auto before = root.left();
    {
      std::vector<std::unique_ptr<char[]>> freed;
      for (int i = 0; i < 100; ++i) freed.push_back(std::make_unique<char[]>(1 << 20));
    }
    const auto kept = before - root.left();
    // Half of the 100 MiB, as cases before this one may have left some in the heap.
    if (kept < 12'800) return fmt::format("the allocator keeps {} pages", kept);
    // With half of the kept memory, there is room for the smallest checked size.
    const auto used = 1'000'000'000 - before;
    limit((static_cast<std::int64_t>(kLargeMemory) + used + kept / 2) * 100 / 99);
    requireMemoryRoom(kLargeMemory, "a test takes", "", root.path().string());
    return std::string("there is room");
  });
  CHECK(outcome == "there is room");
}

TEST_CASE("this process's own memory limit can be read") {
  CHECK_NOTHROW(memoryRoom());
}

}  // namespace muster
