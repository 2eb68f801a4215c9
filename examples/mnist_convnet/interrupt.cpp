#include "examples/mnist_convnet/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <thread>

namespace example {
namespace {

// Shared with the signal handler, which any thread may run at any time.
std::atomic<muster::ParallelWrapper*> running{nullptr};
std::atomic<int> signals{0};
std::atomic<int> inHandler{0};
static_assert(std::atomic<muster::ParallelWrapper*>::is_always_lock_free);
static_assert(std::atomic<int>::is_always_lock_free);

constexpr std::string_view kNotice =
    "\nInterrupted: the step under way is finished and what was trained is saved. Once more quits at once.\n";

/// Only calls that are safe in a handler.
void onSignal(int) {
  const int savedError = errno;
  ++inHandler;
  auto* const wrapper = running.load();
  if (wrapper == nullptr || signals.fetch_add(1) > 0) ::_exit(kInterruptedExit);
  wrapper->stopFit();
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kNotice.data(), kNotice.size());
  --inHandler;
  errno = savedError;
}

}  // namespace

void handleInterrupts() {
  struct sigaction action {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() {
  return signals > 0;
}

InterruptGuard::InterruptGuard(muster::ParallelWrapper& wrapper) {
  running = &wrapper;
}

InterruptGuard::~InterruptGuard() {
  running = nullptr;
  while (inHandler > 0) std::this_thread::yield();  // another thread may be about to use the wrapper
}

}  // namespace example
