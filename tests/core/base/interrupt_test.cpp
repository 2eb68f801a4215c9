#include "muster/core/base/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/child_process.h"
#include "tests/support/test.h"

/// The second signal exits while an Interrupt's thread is running, for which ThreadSanitizer would change the
/// exit status.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {
  return "report_thread_leaks=0";
}

namespace muster {

using namespace std::chrono_literals;

namespace {

/// The process that started this one may have set these signals to be ignored.
void resetSignals() {
  for (const int signal : {SIGINT, SIGHUP, SIGXCPU}) std::signal(signal, SIG_DFL);
}

constexpr char kFilling = '#';

/// A pipe so full that a write blocks: its ends for reading and writing.
std::pair<int, int> fullPipe() {
  int ends[2];
  if (::pipe2(ends, O_NONBLOCK) != 0) std::abort();
  const std::string filling(4096, kFilling);
  while (::write(ends[1], filling.data(), filling.size()) > 0) continue;
  for (const int end : ends) ::fcntl(end, F_SETFL, 0);
  return {ends[0], ends[1]};
}

/// How a child process ends that runs `body` with the writing end of a pipe: its exit status, and what it
/// wrote.
struct Ended {
  int status = 0;
  std::string text;
};
Ended ended(const std::function<void(int)>& body) {
  Ended child;
  const int status = test::support::runChild(body, child.text);
  CHECK(WIFEXITED(status));
  child.status = WEXITSTATUS(status);
  return child;
}

/// Waits until the process has noticed the signal.
void await(const Interrupt& interrupt) {
  while (!interrupt.requested()) std::this_thread::sleep_for(1ms);
}

}  // namespace

TEST_CASE("the first signal requests a stop, for each Interrupt object anew") {
  resetSignals();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXCPU, SIGINT}) {
    const Interrupt interrupt("interrupt_test: a signal");
    const auto token = interrupt.token();
    CHECK_FALSE(interrupt.requested());
    CHECK_FALSE(token.stop_requested());
    std::raise(signal);
    await(interrupt);
    CHECK(token.stop_requested());
  }
  const Interrupt unused;  // ends without a signal
}

TEST_CASE("the second signal ends the program at once, and says so") {
  for (const int second : {SIGINT, SIGTERM}) {
    const Ended child = ended([second](int output) {
      resetSignals();
      const Interrupt interrupt("interrupt_test: a signal");
      std::raise(SIGINT);
      await(interrupt);
      ::dup2(output, STDERR_FILENO);
      std::this_thread::sleep_for(600ms);
      std::raise(second);
    });
    CHECK(child.status == kInterruptedExit);
    CHECK(child.text ==
          "\nInterrupted again: the program ends at once, and what is not saved yet is lost.\n");
  }
}

TEST_CASE("a signal that is sent twice, as by timeout, is one") {
  const Ended child = ended([](int) {
    resetSignals();
    const Interrupt interrupt("interrupt_test: a signal");
    for (int i = 0; i < 2; ++i) std::raise(SIGTERM);
    await(interrupt);
    ::_exit(7);
  });
  CHECK(child.status == 7);
}

TEST_CASE("without an Interrupt a signal ends the program at once, with the line it was given") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXCPU}) {
    const Ended child = ended([signal](int out) {
      resetSignals();
      ::dup2(out, STDERR_FILENO);
      exitOnInterrupt("replaced\n");
      std::string line = "nothing was saved\n";
      exitOnInterrupt(line);
      line.assign(line.size(), 'x');                              // the line was copied
      { const Interrupt interrupt("interrupt_test: a signal"); }  // keeps the line
      std::raise(signal);
    });
    CHECK(child.status == kInterruptedExit);
    CHECK(child.text == "nothing was saved\n");
  }
}

TEST_CASE("signals in two threads at once lose no line") {
  const Ended child = ended([](int out) {
    resetSignals();
    const auto [readEnd, writeEnd] = fullPipe();
    const pid_t interrupted = ::fork();
    if (interrupted == 0) {
      ::dup2(writeEnd, STDERR_FILENO);  // the first line can only be written after some time
      exitOnInterrupt("nothing was saved\n");
      std::jthread other([] { std::raise(SIGTERM); });
      std::raise(SIGINT);
    }
    ::close(writeEnd);
    int ended = 0;
    for (int i = 0; i < 100 && ::waitpid(interrupted, &ended, WNOHANG) == 0; ++i)
      std::this_thread::sleep_for(1ms);
    std::string written, part(65536, ' ');
    for (ssize_t got = 1; got > 0; written.append(part, 0, static_cast<std::size_t>(got)))
      got = std::max<ssize_t>(::read(readEnd, part.data(), part.size()), 0);
    written.erase(0, written.find_last_of(kFilling) + 1);
    [[maybe_unused]] const auto passed = ::write(out, written.data(), written.size());
    ::waitpid(interrupted, &ended, 0);
    ::_exit(WEXITSTATUS(ended));
  });
  CHECK(child.status == kInterruptedExit);
  CHECK(child.text == "nothing was saved\n");
}

TEST_CASE("a signal ends the program also if standard error is a full pipe") {
  const Ended child = ended([](int) {
    resetSignals();
    ::dup2(fullPipe().second, STDERR_FILENO);
    exitOnInterrupt("nothing was saved\n");
    ::alarm(60);  // ends a child that hangs
    std::raise(SIGINT);
  });
  CHECK(child.status == kInterruptedExit);
}

TEST_CASE("SIGXCPU, which the kernel repeats every second, is no second signal") {
  const Ended child = ended([](int) {
    resetSignals();
    const Interrupt interrupt("interrupt_test: a signal");
    for (int i = 0; i < 3; ++i) std::raise(SIGXCPU);
    await(interrupt);
    std::raise(SIGXCPU);
    ::_exit(7);
  });
  CHECK(child.status == 7);
}

TEST_CASE("signals that the parent has set to be ignored stay ignored") {
  for (const int ignored : {SIGINT, SIGHUP, SIGXCPU}) {
    const Ended child = ended([ignored](int) {
      std::signal(ignored, SIG_IGN);
      const Interrupt interrupt("interrupt_test: a signal");
      struct sigaction now {};
      const bool known = ::sigaction(ignored, nullptr, &now) == 0;
      ::_exit(known && now.sa_handler == SIG_IGN ? 7 : 1);
    });
    CHECK(child.status == 7);
  }
}

}  // namespace muster
