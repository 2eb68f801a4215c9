#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "muster/core/nn/network.h"
#include "tests/examples/sandbox.h"
#include "tests/support/sanitizers.h"
#include "tests/support/skip.h"

namespace muster::test {

/// Interrupts a program after it has printed its plan and before its first step, and checks that the file
/// then keeps what it held. A trial may come too late, or before the program asks for its signals: then there
/// is another one, with more workers to start, or a little later.
/// @param argumentsFor  the arguments for so many workers.
/// @param file  that the program would replace.
inline void checkInterruptBeforeFirstStep(
    const Sandbox& sandbox, const std::string& executable,
    const std::function<std::vector<std::string>(const std::string& workers)>& argumentsFor,
    const std::string& file) {
  // On a loaded machine GCC 12's ran no handler while workers trained, so the program ended only after all
  // epochs. Why it keeps the signal is not known; without it no signal was lost.
  if (kThreadSanitizer)
    return skip("ThreadSanitizer sometimes keeps the signal until all epochs are trained");
  using std::chrono::milliseconds;
  constexpr int kTrials = 60, kMostWorkers = 64;
  int workers = 8;
  milliseconds delay{0};
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::string earlier("\x02\0\0\0\0\0\0\0{}", 10);  // as a model begins
    writeFile(sandbox.directory / file, earlier);
    Program running(executable, sandbox.launch(argumentsFor(std::to_string(workers))));
    REQUIRE(running.awaitText("plan: "));
    std::this_thread::sleep_for(delay);
    running.signal(SIGINT);
    const auto outcome = running.wait();
    REQUIRE(outcome.exit == 130);
    const bool kept = readFile(sandbox.directory / file) == earlier;
    if (contains(outcome.out, "ended before the first step: nothing was saved\n")) {
      CHECK(kept);
      return;
    }
    if (kept) {  // the signal ended the program at once
      delay += milliseconds(2);
      continue;
    }
    CHECK(Network::load(sandbox.directory / file)->iteration() > 0);
    workers = std::min(2 * workers, kMostWorkers);
    delay = milliseconds(0);
  }
  FAIL("no signal arrived between the plan and the first step");
}

}  // namespace muster::test
