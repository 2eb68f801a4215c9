// What a signal says during and after a training, in the programs' common parts.
#include "examples/support/training_interrupt.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include "examples/support/program.h"
#include "examples/support/small_training.h"
#include "muster/core/base/error.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/child_process.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

/// Runs `body` in a child process, then sends it a signal. @return its standard error.
std::string lastLineAfter(const std::function<void()>& body) {
  const test::TemporaryDirectory directory;
  std::string unused;
  const int status = test::detail::runChild(
      [&](int) {
        std::signal(SIGINT, SIG_DFL);  // a shell may have set it to be ignored
        ::dup2(::open((directory / "errors").c_str(), O_CREAT | O_WRONLY, 0600), STDERR_FILENO);
        example::endOnInterrupt(example::kInterruptedBefore);
        body();
        std::raise(SIGINT);
      },
      unused);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == kInterruptedExit);
  return test::readFile(directory / "errors");
}

TEST_CASE("after a failed training a signal does not say that it came before the training") {
  const test::TemporaryDirectory directory;
  CHECK(lastLineAfter([&] {
          MultiLayerNetwork network({.inputShape = {2}, .layers = {Output{.classes = 2}}});
          network.init();
          CHECK_THROWS_AS(example::trainAndSave(
                              {.model = (directory / "model").string()}, network,
                              [](const std::stop_token&) { throw Error("it broke"); },
                              [](const std::filesystem::path&) {}),
                          Error);
        }).ends_with("Interrupted.\n"));
}

TEST_CASE("after a training a signal says whether the network is saved") {
  for (const bool saved : {true, false}) {
    const auto text = lastLineAfter([&] {
      example::TrainingInterrupt interrupt;
      interrupt.end(saved);
    });
    CHECK(text.ends_with(std::string(saved ? example::kNetworkSaved : example::kNetworkNotSaved) + "\n"));
  }
}

TEST_CASE("the notice says whether the network will be saved, and a stop stays requested after the end") {
  for (const bool saves : {true, false}) {
    const auto text = lastLineAfter([&] {
      example::TrainingInterrupt interrupt(saves);
      std::raise(SIGINT);
      while (!interrupt.requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      interrupt.end();
      CHECK(interrupt.requested());
      CHECK(interrupt.token().stop_requested());
    });
    CHECK((text.find("is saved. Interrupt again") != std::string::npos) == saves);
    CHECK((text.find("The network is not saved, because no file") != std::string::npos) != saves);
    CHECK(text.ends_with("Interrupted.\n"));
  }
}

}  // namespace
}  // namespace muster
