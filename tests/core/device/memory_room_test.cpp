#include "muster/core/device/memory_room.h"

#include <doctest/doctest.h>

#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

/// A file system of the kernel's files.
struct Root {
  test::TemporaryDirectory directory;

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((directory / path).parent_path());
    test::writeFile(directory / path, text);
  }
  std::optional<MemoryRoom> room() const { return memoryRoom(directory.path()); }
  std::int64_t left() const { return room() ? room()->left : -1; }
};

}  // namespace

TEST_CASE("no limit: nothing to read, or the word for none") {
  Root root;
  CHECK_FALSE(root.room());
  root.write("proc/self/cgroup", "0::/user/job\n");
  CHECK_FALSE(root.room());
  root.write("sys/fs/cgroup/user/job/memory.max", "max\n");
  root.write("sys/fs/cgroup/user/job/memory.current", "5000\n");
  CHECK_FALSE(root.room());
}

TEST_CASE("version 2: the tightest of the group and those above it, without what the kernel gives back") {
  Root root;
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

TEST_CASE("version 1, and a container, which sees its own group at the top") {
  Root root;
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

TEST_CASE("a group that uses more than its limit has nothing left, and no error") {
  Root root;
  root.write("proc/self/cgroup", "0::/\nbroken\n:\n");
  root.write("sys/fs/cgroup/memory.max", "1000");
  root.write("sys/fs/cgroup/memory.current", "1500");
  CHECK(root.left() == -500);
}

TEST_CASE("this process's own can be read") {
  CHECK_NOTHROW(memoryRoom());
}

}  // namespace muster
