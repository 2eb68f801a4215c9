#pragma once

#include <doctest/doctest.h>

#include <sched.h>

#include <cstdio>

#include "tests/support/standard.h"

namespace muster::test {

/// Limits this thread, and those that it starts, to the first `count` of its cores.
inline void limitToCores(int count) {
  cpu_set_t all, first;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  CPU_ZERO(&first);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&first) < count; ++core)
    if (CPU_ISSET(core, &all)) CPU_SET(core, &first);
  REQUIRE(sched_setaffinity(0, sizeof first, &first) == 0);
}
/// As `limitToCores` with one.
inline void limitToOneCore() {
  limitToCores(1);
}

/// Runs a test case of this program, which is otherwise skipped, in a child process. @return its output.
inline std::string outputOfCase(const std::string& name) {
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "'" + self + "' --no-skip --test-case='" + name + "' 2>&1";
  FILE* child = popen(command.c_str(), "r");
  REQUIRE(child != nullptr);
  std::string output;
  char buffer[256];
  while (std::fgets(buffer, sizeof buffer, child)) output += buffer;
  CAPTURE(output);
  CHECK(pclose(child) == 0);
  return output;
}

}  // namespace muster::test
