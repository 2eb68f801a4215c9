#include "examples/compare_convergence/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <string_view>

namespace convergence {
namespace {

std::atomic<int> signals{0};  // shared with the handler, which any thread may run at any time
static_assert(std::atomic<int>::is_always_lock_free);

constexpr std::string_view kNotice =
    "\nInterrupted: the run under way is given up, the finished ones are kept. Once more quits at once.\n";

/// Only calls that are safe in a handler.
void onSignal(int) {
  const int savedError = errno;
  if (signals.fetch_add(1) > 0) ::_exit(kInterruptedExit);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kNotice.data(), kNotice.size());
  errno = savedError;
}

}  // namespace

void noteInterrupts() {
  struct sigaction action {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() {
  return signals > 0;
}

}  // namespace convergence
