#include "muster/core/base/log.h"

#include "muster/core/base/detail/log_scope.h"
#include "tests/support/log_lines.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using Expected = std::vector<std::string>;

TEST_CASE("within a scope, log lines of its thread begin with its name, those of other threads do not") {
  const test::LogLines lines;
  {
    const detail::LogScope outer("block1");
    logInfo("planned");
    {
      const detail::LogScope inner("conv1");
      logWarning("no {}", "algorithm");
    }
    std::jthread([] { logInfo("elsewhere"); }).join();
    logInfo("done");
  }
  logInfo("outside");
  CHECK(lines.all() == Expected{"block1: planned", "warning: block1: conv1: no algorithm", "elsewhere",
                                "block1: done", "outside"});
}

TEST_CASE("a warning is logged once for each scope") {
  const test::LogLines lines;
  for (int replica = 0; replica < 3; ++replica)
    for (const char* layer : {"conv1", "conv2"}) {
      const detail::LogScope scope(layer);
      detail::warnOnce("row-major instead");
    }
  CHECK(lines.all() == Expected{"warning: conv1: row-major instead", "warning: conv2: row-major instead"});
}

}  // namespace
}  // namespace muster
