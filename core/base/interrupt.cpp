#include "muster/core/base/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <system_error>

#include "muster/core/base/log.h"
#include "muster/core/base/signal_stack.h"
#include "muster/core/base/start_thread.h"

namespace muster {
namespace {

constexpr char kSignal = 's', kEnd = 'e';

// Shared with the handler, which any thread may run at any time.
std::atomic<int> pipeOfInterrupt{-1};  // -1: there is none
std::atomic<int> inHandler{0};
std::atomic<bool> taken{false};
std::atomic<const char*> lastLine{""};  // of exitOnInterrupt
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

/// Calls only async-signal-safe functions; `request_stop` is not one.
void onSignal(int signal) {
  const int savedError = errno;
  ++inHandler;
  const int pipe = pipeOfInterrupt;
  if (pipe < 0) {
    const char* const line = lastLine.exchange("");  // two threads may be here
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, std::strlen(line));
    ::_exit(kInterruptedExit);
  }
  const bool repeated = taken.exchange(true);
  if ((repeated && signal != SIGXCPU) || (!repeated && ::write(pipe, &kSignal, 1) != 1))
    ::_exit(kInterruptedExit);
  --inHandler;
  errno = savedError;
}

void handleSignals() {
  useSignalStack();
  struct sigaction action {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;  // see useSignalStack
  for (const int signal : {SIGTERM, SIGUSR1}) ::sigaction(signal, &action, nullptr);
  // `nohup` ignores SIGHUP, and a shell SIGINT for a program in the background, so that it continues.
  for (const int signal : {SIGINT, SIGHUP, SIGXCPU}) {
    struct sigaction before {};
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace

void exitOnInterrupt(const char* line) {
  lastLine = line;
  handleSignals();
}

Interrupt::Interrupt(std::string_view notice) {
  if (::pipe(pipe_.data()) != 0)
    throw std::system_error(errno, std::generic_category(), "interrupt: no pipe");
  const auto await = [this, notice = std::string(notice)] {
    char byte = kEnd;
    while (::read(pipe_[0], &byte, 1) < 0 && errno == EINTR) continue;
    if (byte != kSignal) return;
    log(LogLevel::Info, notice);  // the line appears above a progress bar and replaces the typed ^C
    stop_.request_stop();
  };
  try {
    thread_ = startThread("the interrupt", await);
  } catch (...) {
    for (const int end : pipe_) ::close(end);
    throw;
  }
  taken = false;
  pipeOfInterrupt = pipe_[1];
  handleSignals();
}

Interrupt::~Interrupt() {
  pipeOfInterrupt = -1;
  while (inHandler > 0) std::this_thread::yield();  // another thread may be about to write
  [[maybe_unused]] const auto written = ::write(pipe_[1], &kEnd, 1);
  thread_.join();
  ::close(pipe_[0]);
  ::close(pipe_[1]);
}

}  // namespace muster
