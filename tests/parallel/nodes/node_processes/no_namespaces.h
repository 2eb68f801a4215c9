#pragma once

#include "tests/parallel/nodes/node_processes/process.h"
#include "tests/support/skip.h"

namespace muster::test {

/// Whether network namespaces are not available; then the test is skipped.
inline bool noNamespaces() {
  if (Process({MUSTER_NAMESPACES, "1", "none", "/bin/true"}).wait(std::chrono::seconds(30)) == 0)
    return false;
  skip("no network namespaces here (they want root, iproute2, and a kernel that has bridges)");
  return true;
}

}  // namespace muster::test
