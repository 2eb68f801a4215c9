#include "muster/core/base/log.h"

#include "muster/core/base/detail/log_scope.h"
#include "tests/support/test.h"

namespace muster {
namespace {

/// Keeps the lines logged while it lives.
struct Lines {
  Lines() {
    before = setLogSink([this](LogLevel, std::string_view text) { all.emplace_back(text); });
  }
  ~Lines() { setLogSink(before); }
  LogSink before;
  std::vector<std::string> all;
};

using Expected = std::vector<std::string>;

TEST_CASE("within a scope, log lines of its thread begin with its name, those of other threads do not") {
  Lines lines;
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
  CHECK(lines.all ==
        Expected{"block1: planned", "block1: conv1: no algorithm", "elsewhere", "block1: done", "outside"});
}

TEST_CASE("a warning is logged once for each scope") {
  Lines lines;
  for (int replica = 0; replica < 3; ++replica)
    for (const char* layer : {"conv1", "conv2"}) {
      const detail::LogScope scope(layer);
      detail::warnOnce("row-major instead");
    }
  CHECK(lines.all == Expected{"conv1: row-major instead", "conv2: row-major instead"});
}

}  // namespace
}  // namespace muster
