// Signals: outside the training a program ends at once, with a sentence; within it saves what was trained.
#include <fcntl.h>

#include <csignal>
#include <thread>

#include "examples/muster/program.h"
#include "muster/core/base/error.h"
#include "muster/parallel/run/detail/keep_network.h"
#include "tests/examples/sandbox.h"
#include "tests/support/child_process.h"
#include "tests/support/skip.h"

namespace muster {
namespace {

using program::TrainingInterrupt;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using test::contains;
using test::Outcome;
using test::Program;
using test::Sandbox;

/// A sandbox with run.json: a training on a few mixtures, of more epochs than a test waits for.
struct Endless : Sandbox {
  Endless() {
    write("run.json", R"({"format": "muster-run/1", "network": "mlp",
      "data": {"type": "mixtures", "trainExamples": 96, "testExamples": 40},
      "training": {"epochs": 1000000, "devices": "cpu", "pinThreads": false, "model": "model"}})");
  }
};

/// Interrupts a line until a trial says `sentence`, for which the signal has to come at the right moment. A
/// trial that comes too early is followed by one that waits longer, a trial that comes too late by one that
/// does not wait. What it left is removed before the next one.
/// @param awaitBegin  waits until the program has come so far that the moment may be near.
/// @param early       what a trial says that came too early.
/// @return the last trial.
Outcome interruptUntil(const Sandbox& sandbox, const std::string& line,
                       const std::function<void(Program&)>& awaitBegin, const std::string& early,
                       const std::string& sentence, int signal = SIGINT) {
  const auto begin = sandbox.directory.names();
  microseconds delay{0};
  for (int trial = 0; trial < 60; ++trial) {
    for (const auto& name : sandbox.directory.names())
      if (!begin.contains(name)) std::filesystem::remove_all(sandbox.directory / name);
    auto program = sandbox.start(line);
    awaitBegin(program);
    std::this_thread::sleep_for(delay);
    program.signal(signal);
    auto outcome = program.wait();
    if (contains(outcome.out + outcome.err, sentence)) {
      CHECK(outcome.exit == 130);
      return outcome;
    }
    delay = contains(outcome.err, early) ? std::max(microseconds(500), 2 * delay) : microseconds(0);
  }
  FAIL("no trial said ", sentence);
  return {};
}

TEST_CASE("a signal outside the training ends a program at once, and it says what was saved") {
  const Endless muster;
  // Drawing so many takes longer than the start of a program.
  const std::string many = " --set data.trainExamples=60000", train = "train run.json" + many,
                    nothing = "muster: Interrupted before training; nothing was saved.\n";
  const std::tuple<std::string, int, std::string> lines[] = {
      {train, SIGINT, nothing},
      {train, SIGTERM, nothing},
      {train, SIGHUP, nothing},
      {"plan run.json" + many, SIGINT, "muster: Interrupted.\n"},
      {"compare run.json --arm averaging --arm synchronous" + many, SIGINT,
       "muster: Interrupted; finished runs are kept.\n"}};
  for (const auto& [line, signal, sentence] : lines) {
    CAPTURE(line);
    const auto awaitHandler = [number = signal](Program& program) { program.awaitHandler(number); };
    const auto outcome = interruptUntil(muster, line, awaitHandler, ": Interrupted.\n", sentence, signal);
    CHECK(outcome.err == sentence);
    CHECK_FALSE(muster.has("model"));
  }
}

TEST_CASE("a signal before the first step saves nothing") {
  // On a loaded machine GCC 12's ran no handler while workers trained, so the program ended only after all
  // epochs. Why it keeps the signal is not known; without it no signal was lost.
  if (test::kThreadSanitizer)
    return test::skip("ThreadSanitizer sometimes keeps the signal until all epochs are trained");
  const Endless muster;
  const std::string earlier("\x02\0\0\0\0\0\0\0{}", 10);  // as a model begins
  interruptUntil(
      muster, "train run.json --workers 64",  // which takes a while to start
      [&](Program& program) {
        REQUIRE(program.awaitText("plan: "));
        muster.write("model", earlier);
      },
      "before training", "ended before the first step: nothing was saved\n");
  CHECK(muster.read("model") == earlier);
}

TEST_CASE("a signal during the test after the training ends the program, which has saved the network") {
  const Sandbox muster;
  const auto outcome = interruptUntil(
      muster,
      "train " MUSTER_MNIST_RUN
      " --data generated --train-examples 64 --test-examples 10000 --epochs 1 --pin-threads false --device "
      "cpu --model model" +
          test::reportIn("report"),
      [&](Program& program) {
        while (!muster.has("model") && !program.endsWithin(milliseconds(1))) continue;
      },
      // It still saved the network: then it ends after the test.
      "Interrupted: the current step is finished",
      "muster: Interrupted after training: the network is saved, and further results are left out.\n");
  CHECK_LACKS(outcome.out, "accuracy");
  CHECK_FALSE(muster.has("report/report.html"));
  CHECK(muster.has("model"));
}

/// Runs `body` in a child process, then sends it a signal. @return its standard error.
std::string lastLineAfter(const std::function<void(TrainingInterrupt&)>& body) {
  const test::TemporaryDirectory directory;
  std::string unused;
  const int status = test::detail::runChild(
      [&](int) {
        std::signal(SIGINT, SIG_DFL);  // a shell may have set it to be ignored
        ::dup2(::open((directory / "errors").c_str(), O_CREAT | O_WRONLY, 0600), STDERR_FILENO);
        program::endOnInterrupt(program::kInterruptedBefore);
        {
          TrainingInterrupt interrupt;
          body(interrupt);
        }
        std::raise(SIGINT);
      },
      unused);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == kInterruptedExit);
  return test::readFile(directory / "errors");
}

TEST_CASE("after a training a signal says whether the network is saved, and of a failed one neither") {
  CHECK(lastLineAfter([](auto&) {
          CHECK_THROWS_AS(detail::trainAndSave([] { throw Error("it broke"); }, [](bool) {}, "", {}), Error);
        }).ends_with("Interrupted.\n"));
  CHECK_CONTAINS(lastLineAfter([](auto& training) { training.end(true); }), program::kNetworkSaved);
  CHECK_CONTAINS(lastLineAfter([](auto& training) { training.end(false); }), program::kNetworkNotSaved);
}

TEST_CASE("the notice says that the network will be saved, and a stop stays requested after the end") {
  const auto text = lastLineAfter([](auto& training) {
    std::raise(SIGINT);
    while (!training.requested()) std::this_thread::sleep_for(milliseconds(1));
    training.end();
    CHECK(training.requested());
    CHECK(training.token().stop_requested());
  });
  CHECK_CONTAINS(text, "is saved. Interrupt again");
  CHECK(text.ends_with("Interrupted.\n"));
}

}  // namespace
}  // namespace muster
