#include "muster/core/device/affinity.h"

#include <omp.h>
#include <sched.h>

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/device/detail/loop_threads.h"
#include "muster/core/device/device.h"

namespace muster {
namespace {

/// Pins the calling thread and the threads of its OpenMP loops, which libgomp keeps after the loop.
bool pinAll(const std::vector<int>& cores, int threads) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores) {
    if (core < 0 || core >= CPU_SETSIZE) return false;
    CPU_SET(core, &set);
  }
  if (sched_setaffinity(0, sizeof set, &set) != 0) return false;
  if (threads > 1 && canRunLoops()) {
#pragma omp parallel num_threads(threads)
    sched_setaffinity(0, sizeof set, &set);
  }
  return true;
}

}  // namespace

void startOpenMp() {
  cpu_set_t set;
  const bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  omp_get_max_threads();
  if (known) sched_setaffinity(0, sizeof set, &set);
}

ThreadPin::ThreadPin(const std::vector<int>& cores, int threads)
    : threads_(threads), thread_(std::this_thread::get_id()) {
  if (cores.empty()) return;
  const auto before = availableCores();
  auto wanted = cores;
  std::ranges::sort(wanted);
  // The system drops forbidden cores without an error if at least one is allowed.
  if (!pinAll(wanted, threads) || !std::ranges::equal(availableCores(), wanted)) {
    pinAll(before, threads);
    throw InvalidArgument(
        fmt::format("context: this process may not use all of the cores {}; the thread had {}",
                    fmt::join(cores, ","), fmt::join(before, ",")));
  }
  before_ = before;
}

ThreadPin::~ThreadPin() {
  if (before_.empty() || thread_ != std::this_thread::get_id()) return;
  if (!pinAll(before_, threads_))
    logWarning("context: cannot give the thread its former cores {} back", fmt::join(before_, ","));
}

}  // namespace muster
