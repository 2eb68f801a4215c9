// Ctrl-C outside the training: each program ends at once, with a sentence.
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/examples/sandbox.h"

namespace muster {
namespace {

using test::contains;
using test::Outcome;
using test::Sandbox;

/// Interrupts a program so early that it has not begun to train. A trial may come before the program asks for
/// its signals: then there is another one, a little later.
Outcome interruptEarly(const Sandbox& sandbox, const char* executable,
                       const std::vector<std::string>& arguments, int signal) {
  using std::chrono::milliseconds;
  Outcome outcome;
  for (milliseconds delay(30); delay < milliseconds(5000); delay += delay) {
    test::Program running(executable, sandbox.launch(arguments));
    std::this_thread::sleep_for(delay);
    running.signal(signal);
    outcome = running.wait();
    if (outcome.exit != -signal) break;
  }
  return outcome;
}

TEST_CASE("a signal before the training ends a program at once, and it says that nothing was saved") {
  const std::string many = "60000";  // drawing them takes longer than the start of a program
  const std::vector<std::string> drawn{"--data", "generated", "--examples", many};
  const auto check = [](const char* executable, const std::vector<std::string>& arguments) {
    const Sandbox sandbox(executable);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      CAPTURE(executable);
      const auto outcome = interruptEarly(sandbox, executable, arguments, signal);
      CHECK(outcome.exit == 130);
      CHECK(outcome.err == std::filesystem::path(executable).filename().string() +
                               ": Interrupted before training; nothing was saved.\n");
      CHECK(sandbox.directory.names().empty());
    }
  };
  check(MUSTER_MNIST_CONVNET, drawn);
  check(MUSTER_LENET_FROM_SCRATCH, drawn);
  check(MUSTER_RESNET18_FASHION, drawn);
  check(MUSTER_FINE_TUNE, drawn);
  check(MUSTER_OWN_STRATEGY, {"--examples", many});
  check(MUSTER_OWN_MODEL, {"--examples", many});
}

TEST_CASE("a signal before the training of a run file, and in the other commands, is answered, too") {
  const Sandbox sandbox(MUSTER_PROGRAM);
  test::writeFile(sandbox.directory / "run.json", sandbox.run({"example"}).out);
  const auto errorOf = [&](const std::vector<std::string>& arguments) {
    const auto outcome = interruptEarly(sandbox, MUSTER_PROGRAM, arguments, SIGINT);
    CHECK(outcome.exit == 130);
    return outcome.err;
  };
  const std::vector<std::string> many{"run.json", "--set", "data.trainExamples=60000"};
  const auto with = [&](const char* command) {
    std::vector<std::string> all{command};
    all.insert(all.end(), many.begin(), many.end());
    return all;
  };
  CHECK(errorOf(with("train")) == "muster: Interrupted before training; nothing was saved.\n");
  CHECK(errorOf(with("plan")) == "muster: Interrupted.\n");
  CHECK(errorOf({"compare", "--data", "generated", "--examples", "60000"}) ==
        "muster: Interrupted; finished runs are kept.\n");
}

TEST_CASE("a signal during the test after the training ends the program, which has saved the network") {
  const Sandbox sandbox(MUSTER_MNIST_CONVNET);
  const std::vector<std::string> arguments{
      "--data",        "generated", "--train-examples", "64",  "--test-examples", "30000", "--epochs", "1",
      "--pin-threads", "false",     "--device",         "cpu", "--report",        "report"};
  test::Program running(MUSTER_MNIST_CONVNET, sandbox.launch(arguments));
  const auto model = sandbox.directory / "mnist-convnet.safetensors";
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!std::filesystem::exists(model) && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the test takes seconds
  running.signal(SIGINT);
  const auto outcome = running.wait();
  CHECK(outcome.exit == 130);
  CHECK_MESSAGE(contains(outcome.err,
                         "mnist_convnet: Interrupted after training: the network is saved; its test and "
                         "further files are left out.\n"),
                outcome.err);
  CHECK_FALSE(contains(outcome.out, "accuracy"));
  CHECK_FALSE(std::filesystem::exists(sandbox.directory / "report" / "report.html"));
  CHECK(std::filesystem::exists(model));
}

}  // namespace
}  // namespace muster
