#include "muster/core/base/interrupt.h"

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>

namespace muster {

using namespace std::chrono_literals;

TEST_CASE("the first signal requests a stop, for each object anew") {
  for (const int signal : {SIGINT, SIGTERM, SIGINT}) {
    const Interrupt interrupt("interrupt_test: a signal");
    const auto token = interrupt.token();
    CHECK_FALSE(interrupt.requested());
    CHECK_FALSE(token.stop_requested());
    std::raise(signal);
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (!interrupt.requested() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    CHECK(interrupt.requested());
    CHECK(token.stop_requested());
  }
  const Interrupt unused;  // ends without a signal
}

}  // namespace muster
