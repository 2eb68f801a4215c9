// Ctrl-C: outside the training a program ends at once, with a sentence; within it saves what was trained.

#include "tests/examples/early_interrupt.h"

namespace muster {
namespace {

using test::contains;
using test::Outcome;
using test::Sandbox;

/// Interrupts a program until a trial ends with `sentence` on standard error, for which the signal has to
/// come at the right moment. A trial that comes too early is followed by one that waits longer, a trial that
/// comes too late by one that does not wait.
/// @param awaitBegin  waits until the program has come so far that the moment may be near.
/// @param early       whether a trial came too early.
/// @return the last trial.
Outcome interruptUntil(const std::function<std::unique_ptr<test::Program>()>& start,
                       const std::function<void(test::Program&)>& awaitBegin,
                       const std::function<bool(const Outcome&)>& early, const std::string& sentence,
                       int signal) {
  using std::chrono::microseconds;
  constexpr int kTrials = 60;
  Outcome outcome;
  microseconds delay{0};
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto program = start();
    awaitBegin(*program);
    std::this_thread::sleep_for(delay);
    program->signal(signal);
    outcome = program->wait();
    if (outcome.err.ends_with(sentence)) break;
    delay = early(outcome) ? std::max(microseconds(500), 2 * delay) : microseconds(0);
  }
  return outcome;
}

/// Interrupts a program before it trains, until it ends with `sentence`. What a trial left that came too late
/// is removed before the next one.
Outcome interruptEarly(const Sandbox& sandbox, const char* executable,
                       const std::vector<std::string>& arguments, const std::string& sentence, int signal) {
  const auto begin = sandbox.directory.names();
  return interruptUntil(
      [&] {
        for (const auto& name : sandbox.directory.names()) {
          if (!begin.contains(name)) std::filesystem::remove_all(sandbox.directory / name);
        }
        return std::make_unique<test::Program>(executable, sandbox.launch(arguments));
      },
      [&](test::Program& program) { program.awaitHandler(signal); },
      [](const Outcome& outcome) { return outcome.err.ends_with(": Interrupted.\n"); }, sentence, signal);
}

TEST_CASE("a signal before the training ends a program at once, and it says that nothing was saved") {
  const std::string many = "60000";  // drawing them takes longer than the start of a program
  const std::vector<std::string> drawn{"train", MUSTER_MNIST_RUN, "--data", "generated", "--examples", many};
  const auto check = [](const char* executable, const std::vector<std::string>& arguments) {
    const Sandbox sandbox(executable);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      CAPTURE(executable);
      const auto expected = std::filesystem::path(executable).filename().string() +
                            ": Interrupted before training; nothing was saved.\n";
      CHECK(test::errorOf(interruptEarly(sandbox, executable, arguments, expected, signal), 130) == expected);
      CHECK(sandbox.directory.names().empty());
    }
  };
  check(MUSTER_PROGRAM, drawn);
}

TEST_CASE("a signal in the other commands is answered, too") {
  const Sandbox sandbox(MUSTER_PROGRAM);
  test::writeFile(sandbox.directory / "run.json", sandbox.run({"example"}).out);
  const auto check = [&](const std::vector<std::string>& arguments, const std::string& expected) {
    CHECK(test::errorOf(interruptEarly(sandbox, MUSTER_PROGRAM, arguments, expected, SIGINT), 130) ==
          expected);
  };
  const std::string many = "data.trainExamples=60000";
  check({"plan", "run.json", "--set", many}, "muster: Interrupted.\n");
  check({"compare", "run.json", "--arm", "averaging", "--arm", "synchronous", "--set", many},
        "muster: Interrupted; finished runs are kept.\n");
}

/// A training by muster of a few generated digits, of more epochs than a test waits for.
std::vector<std::string> endless(const Sandbox& sandbox, const std::vector<std::string>& sets) {
  test::writeFile(sandbox.directory / "run.json", sandbox.run({"example"}).out);
  std::vector<std::string> arguments{"train", "run.json"};
  for (const char* set : {"data.trainExamples=96", "data.testExamples=40", "training.epochs=1000000",
                          "training.pinThreads=false", "training.devices=cpu"})
    arguments.insert(arguments.end(), {"--set", set});
  for (const auto& set : sets) arguments.insert(arguments.end(), {"--set", set});
  return arguments;
}

TEST_CASE("a signal before the first step saves nothing") {
  const Sandbox sandbox(MUSTER_PROGRAM);
  test::checkInterruptBeforeFirstStep(
      sandbox, MUSTER_PROGRAM,
      [&](const std::string& workers) {
        return endless(sandbox, {"training.model=earlier", "training.workers=" + workers});
      },
      "earlier");
}

TEST_CASE("a training whose directory has vanished is saved in another one") {
  const Sandbox sandbox(MUSTER_PROGRAM);
  auto launch = sandbox.launch(endless(sandbox, {"training.model=d/net"}));
  const auto other = sandbox.directory / "other";
  launch.environment["TMPDIR"] = other.string();
  std::filesystem::create_directories(sandbox.directory / "d");
  std::filesystem::create_directories(other);
  test::Program running(MUSTER_PROGRAM, launch);
  REQUIRE(running.awaitText("epoch 1/1000000: "));
  std::filesystem::remove_all(sandbox.directory / "d");
  running.signal(SIGINT);
  REQUIRE(contains(test::errorOf(running.wait(), 1), "; saved as " + other.string() + "/net-"));
  for (const auto& file : std::filesystem::directory_iterator(other))
    CHECK(Network::load(file.path())->iteration() > 0);
}

TEST_CASE("a signal during the test after the training ends the program, which has saved the network") {
  const Sandbox sandbox(MUSTER_PROGRAM);
  const auto arguments = test::withReport(
      {"train", MUSTER_MNIST_RUN, "--data", "generated", "--train-examples", "64", "--test-examples", "30000",
       "--epochs", "1", "--pin-threads", "false", "--device", "cpu"},
      "report");
  const auto model = sandbox.directory / "mnist-convnet.safetensors";
  const std::string expected =
      "muster: Interrupted after training: the network is saved, and further results are left out.\n";
  const auto outcome = interruptUntil(
      [&] {
        std::filesystem::remove_all(sandbox.directory / "report");  // of a trial that came too late
        std::filesystem::remove(model);
        return std::make_unique<test::Program>(MUSTER_PROGRAM, sandbox.launch(arguments));
      },
      [&](test::Program& program) {
        while (!std::filesystem::exists(model) && !program.endsWithin(std::chrono::milliseconds(1))) continue;
      },
      // It still saved the network: then it ends after the test.
      [](const Outcome& trial) { return contains(trial.err, "Interrupted: the current step is finished"); },
      expected, SIGINT);
  CHECK(outcome.exit == 130);
  CHECK_MESSAGE(outcome.err.ends_with(expected), outcome.err);
  CHECK_FALSE(contains(outcome.out, "accuracy"));
  CHECK_FALSE(std::filesystem::exists(sandbox.directory / "report" / "report.html"));
  CHECK(std::filesystem::exists(model));
}

}  // namespace
}  // namespace muster
