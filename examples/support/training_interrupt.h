#pragma once

#include "examples/support/interrupt.h"
#include "muster/core/nn/listener.h"
#include "muster/parallel/parallel_wrapper.h"

namespace example {

/// Handles Ctrl-C (SIGINT) and SIGTERM from now on: until an `InterruptGuard` lives, by ending the program at
/// once with 130, as there is nothing to save yet.
void handleInterrupts();

/// While it lives, the first signal stops `wrapper.fit()` after the step under way, and a second one ends the
/// program at once. One at a time; the wrapper must outlive it.
class InterruptGuard {
 public:
  explicit InterruptGuard(muster::ParallelWrapper& wrapper);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// Stops a `fit()` whose signal came before it had begun.
class InterruptListener final : public muster::Listener {
 public:
  void onEpochStart(const muster::EpochEvent& event) override {
    if (interrupted()) event.trainer.stopFit();
  }
};

}  // namespace example
