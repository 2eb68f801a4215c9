#include "examples/support/training_interrupt.h"

#include <atomic>
#include <thread>

namespace example {
namespace {

// Shared with the signal handler, which any thread may run at any time.
std::atomic<muster::ParallelWrapper*> running{nullptr};
std::atomic<int> inHandler{0};
static_assert(std::atomic<muster::ParallelWrapper*>::is_always_lock_free);
static_assert(std::atomic<int>::is_always_lock_free);

bool stopTraining() {
  ++inHandler;
  auto* const wrapper = running.load();
  if (wrapper != nullptr) wrapper->stopFit();
  --inHandler;
  return wrapper != nullptr;
}

}  // namespace

void handleInterrupts() {
  handleInterrupts(
      stopTraining,
      "\nInterrupted: the step under way is finished and what was trained is saved. Once more quits at "
      "once.\n");
}

InterruptGuard::InterruptGuard(muster::ParallelWrapper& wrapper) {
  running = &wrapper;
}

InterruptGuard::~InterruptGuard() {
  running = nullptr;
  while (inHandler > 0) std::this_thread::yield();  // another thread may be about to use the wrapper
}

}  // namespace example
