#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "muster/core/nn/network.h"
#include "tests/examples/sandbox.h"

namespace muster::test {

/// Interrupts a program after `text` in its output, a little later in each trial, until one was interrupted
/// before its first step, and checks that the file then keeps what it held.
inline void checkInterruptBeforeFirstStep(const Sandbox& sandbox, const std::string& executable,
                                          const std::vector<std::string>& arguments, const std::string& text,
                                          const std::string& file) {
  constexpr int kTrials = 40;
  bool before = false;
  for (int trial = 0; trial < kTrials && !before; ++trial) {
    writeFile(sandbox.directory / file, "earlier");
    Program running(executable, sandbox.launch(arguments));
    REQUIRE(running.awaitText(text));
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * trial));
    running.signal(SIGINT);
    const auto outcome = running.wait();
    CHECK(outcome.exit == 130);
    before = outcome.out.find("ended before the first step: nothing was saved\n") != std::string::npos;
    const bool kept = readFile(sandbox.directory / file) == "earlier";
    if (before) CHECK(kept);
    if (!kept) CHECK(Network::load(sandbox.directory / file)->iteration() > 0);
  }
  CHECK(before);
}

}  // namespace muster::test
