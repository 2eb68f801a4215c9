// What a signal says during and after a training, in the programs' common parts.

#include <fcntl.h>

#include <chrono>
#include <thread>

#include "examples/muster/program.h"
#include "muster/core/base/error.h"
#include "muster/parallel/run/detail/keep_network.h"
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
        program::endOnInterrupt(program::kInterruptedBefore);
        body();
        std::raise(SIGINT);
      },
      unused);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == kInterruptedExit);
  return test::readFile(directory / "errors");
}

TEST_CASE("after a failed training a signal does not say that it came before the training") {
  CHECK(lastLineAfter([] {
          program::TrainingInterrupt interrupt;
          CHECK_THROWS_AS(detail::trainAndSave([] { throw Error("it broke"); }, [](bool) {}, "", {}), Error);
        }).ends_with("Interrupted.\n"));
}

TEST_CASE("after a training a signal says whether the network is saved") {
  for (const bool saved : {true, false}) {
    const auto text = lastLineAfter([&] {
      program::TrainingInterrupt interrupt;
      interrupt.end(saved);
    });
    CHECK(text.ends_with(std::string(saved ? program::kNetworkSaved : program::kNetworkNotSaved) + "\n"));
  }
}

TEST_CASE("the notice says that the network will be saved, and a stop stays requested after the end") {
  const auto text = lastLineAfter([] {
    program::TrainingInterrupt interrupt;
    std::raise(SIGINT);
    while (!interrupt.requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    interrupt.end();
    CHECK(interrupt.requested());
    CHECK(interrupt.token().stop_requested());
  });
  CHECK(text.find("is saved. Interrupt again") != std::string::npos);
  CHECK(text.ends_with("Interrupted.\n"));
}

}  // namespace
}  // namespace muster
