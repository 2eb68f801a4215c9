#include "muster/core/device/detail/control_group.h"

#include "muster/core/device/device.h"
#include "tests/core/device/fake_root.h"
#include "tests/support/test.h"

namespace muster {
namespace {

struct Root : test::FakeRoot {
  std::optional<double> quota() const { return detail::cpuQuota(path().string()); }
};

}  // namespace

TEST_CASE("there is no quota if no file can be read or the file says \"max\"") {
  Root root;
  CHECK_FALSE(root.quota());
  root.write("proc/self/cgroup", "broken\n:\n0::\n0::/user/job\n");
  CHECK_FALSE(root.quota());
  root.write("sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/cpu.max", "max 100000\n");
  CHECK_FALSE(root.quota());
}

TEST_CASE("cgroup version 2: the quota is the smallest of the process's group and those above it") {
  Root root;
  root.write("proc/self/cgroup", "0::/user/job\n");
  root.write("sys/fs/cgroup/user/job/cpu.max", "250000 100000\n");
  CHECK(root.quota() == 2.5);
  root.write("sys/fs/cgroup/user/cpu.max", "150000 100000\n");
  CHECK(root.quota() == 1.5);
  root.write("sys/fs/cgroup/cpu.max", "400000 100000\n");
  CHECK(root.quota() == 1.5);
  root.write("sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
  CHECK(root.quota() == 1.5);
}

TEST_CASE("cgroup version 2: a container sees its own group at the top, whatever its path is") {
  Root root;
  root.write("proc/self/cgroup", "0::/docker/1234\n");
  root.write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  CHECK(root.quota() == 0.5);
  root.write("proc/self/cgroup", "0::/\n");
  CHECK(root.quota() == 0.5);
}

TEST_CASE("cgroup version 1: the quota is found if the controller shares its line with others") {
  Root root;
  root.write("proc/self/cgroup", "3:cpuset:/elsewhere\n2:cpu,cpuacct:/docker/1234\n");
  root.write("sys/fs/cgroup/cpu/docker/1234/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/docker/1234/cpu.cfs_period_us", "100000\n");
  CHECK_FALSE(root.quota());
  root.write("sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", "300000\n");
  root.write("sys/fs/cgroup/cpu/docker/cpu.cfs_period_us", "100000\n");
  CHECK(root.quota() == 3);
  root.write("sys/fs/cgroup/cpuset/elsewhere/cpu.cfs_quota_us", "1000\n");
  CHECK(root.quota() == 3);
}

TEST_CASE("this process's own quota can be read") {
  const auto quota = detail::cpuQuota();
  if (quota) CHECK(availableParallelism() <= std::max(1.0, *quota));
}

}  // namespace muster
