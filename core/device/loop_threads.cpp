#include "muster/core/device/detail/loop_threads.h"

#include <unistd.h>

#include "muster/core/base/error.h"

namespace muster {
namespace {

/// The process in which the calling thread's loops got their threads; 0: they have none.
thread_local pid_t loopsOf = 0;

}  // namespace

bool canRunLoops() {
  return loopsOf == 0 || loopsOf == ::getpid();
}

void requireOwnLoopThreads(int threads) {
  if (threads < 2) return;
  require(canRunLoops(),
          "context: this process is a child of the one in which this thread computed with several threads, "
          "and does not have them; call exec after fork, compute on a new thread, or with one thread");
  loopsOf = ::getpid();
}

}  // namespace muster
