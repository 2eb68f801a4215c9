#include "examples/support/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace example {
namespace {

// Written before the handler is installed.
bool (*takeSignal)() = nullptr;
std::string_view noticeText;

std::atomic<int> signals{0};  // shared with the handler, which any thread may run at any time
static_assert(std::atomic<int>::is_always_lock_free);

/// Only calls that are safe in a handler.
void onSignal(int) {
  const int savedError = errno;
  if (signals.fetch_add(1) > 0 || !takeSignal()) ::_exit(kInterruptedExit);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, noticeText.data(), noticeText.size());
  errno = savedError;
}

}  // namespace

void handleInterrupts(bool (*take)(), std::string_view notice) {
  takeSignal = take;
  noticeText = notice;
  struct sigaction action {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() {
  return signals > 0;
}

}  // namespace example
