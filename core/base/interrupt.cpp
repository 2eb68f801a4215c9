#include "muster/core/base/interrupt.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <string>
#include <system_error>

#include "muster/core/base/log.h"
#include "muster/core/base/signal_stack.h"
#include "muster/core/base/start_thread.h"

namespace muster {
namespace {

constexpr char kSignal = 's', kEnd = 'e';

/// A line of exitOnInterrupt. It is never deleted, because a handler may be reading it.
struct Line {
  std::string text;
  const Line* before = nullptr;  // keeps the earlier lines reachable, for LeakSanitizer
};

// Shared with the handler, which any thread may run at any time.
std::atomic<int> pipeOfInterrupt{-1};  // -1: there is none
std::atomic<int> inHandler{0};
std::atomic<std::int64_t> firstSignal{0};  // the first signal and when it came, see stampOf; 0: none yet
std::atomic<bool> ending{false};           // a handler is ending the program
std::atomic<const Line*> lastLine{nullptr};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free &&
              std::atomic<const Line*>::is_always_lock_free);

constexpr int kHandled[] = {SIGTERM, SIGUSR1, SIGINT, SIGHUP, SIGXCPU};

/// Nanoseconds within which the first signal, sent again, is one signal: `timeout` sends it to the program
/// and to its group.
constexpr std::int64_t kOneSignal = 500'000'000;

/// After the notice, or the line of a progress bar that has not ended.
constexpr std::string_view kAtOnce =
    "\nInterrupted again: the program ends at once, and what is not saved yet is lost.\n";

/// Writes the line and ends the program. Only the first handler does so: one in another thread waits for it,
/// because ending the program at once would lose the line. Async-signal-safe: AddressSanitizer would allocate
/// memory before a call that does not return, and wait for ever if the signal came in an allocation.
[[noreturn, gnu::no_sanitize_address]] void endProgram(std::string_view line) {
  while (ending.exchange(true)) ::pause();
  if (!line.empty()) {
    // A full pipe or a stopped terminal must not keep the program from ending.
    constexpr int kMilliseconds = 2000;
    pollfd error{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    int ready = 0;
    do ready = ::poll(&error, 1, kMilliseconds);
    while (ready < 0 && errno == EINTR);
    if (ready > 0) {
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
    }
  }
  ::_exit(kInterruptedExit);
}

constexpr std::int64_t kSignals = 64;  // a signal's number is less

/// The time in nanoseconds by the monotonic clock, with the signal's number as its last digit to base 64.
/// Async-signal-safe.
std::int64_t stampOf(int signal) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t nanoseconds = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  return nanoseconds - nanoseconds % kSignals + signal;
}

/// Whether a signal that came later is another one than the first.
bool isSecond(std::int64_t stamp, std::int64_t firstStamp) {
  const bool same = stamp % kSignals == firstStamp % kSignals;
  return stamp % kSignals != SIGXCPU && (!same || stamp - firstStamp > kOneSignal);
}

/// Calls only async-signal-safe functions; `request_stop` is not one.
[[gnu::no_sanitize_address]] void onSignal(int signal) {
  const int savedError = errno;
  ++inHandler;
  const int pipe = pipeOfInterrupt;
  if (pipe < 0) {
    const Line* const line = lastLine;
    endProgram(line ? std::string_view(line->text) : std::string_view());
  }
  const std::int64_t stamp = stampOf(signal);
  std::int64_t before = 0;
  if (!firstSignal.compare_exchange_strong(before, stamp)) {
    if (isSecond(stamp, before)) endProgram(kAtOnce);
  } else if (::write(pipe, &kSignal, 1) != 1) {
    endProgram("\nInterrupted.\n");
  }
  --inHandler;
  errno = savedError;
}

void handleSignals() {
  useSignalStack();
  struct sigaction action {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;  // see useSignalStack
  ::sigemptyset(&action.sa_mask);
  // A handler that interrupted endProgram in the same thread would wait for ever.
  for (const int signal : kHandled) ::sigaddset(&action.sa_mask, signal);
  for (const int signal : kHandled) {
    // `nohup` ignores SIGHUP, and a shell SIGINT for a program in the background, so that it continues.
    const bool mayBeIgnored = signal == SIGINT || signal == SIGHUP || signal == SIGXCPU;
    struct sigaction before {};
    if (mayBeIgnored && (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN))
      continue;
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace

void exitOnInterrupt(std::string_view line) {
  auto* const next = new Line{.text = std::string(line)};
  next->before = lastLine.exchange(next);
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
  firstSignal = 0;
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
