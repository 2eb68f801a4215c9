#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#if defined(__SANITIZE_THREAD__)
#include <thread>
#include <vector>
#endif

#include "muster/core/device/context.h"

namespace muster::cpu {

/// Calls f(begin, end) on parts of [0, count), one for each of the context's threads, and waits for all.
///
/// Parts begin at multiples of `grain` (at least 1), which is also the least that a thread is given: one
/// thread, or a count up to the grain, runs inline. The parts depend on count, grain and threads alone. `f`
/// must not throw.
template <typename F>
void parallelFor(Context& context, std::int64_t count, std::int64_t grain, F f) {
  if (count <= 0) return;
  const std::int64_t grains = (count + grain - 1) / grain;
  const int threads = static_cast<int>(std::min<std::int64_t>(context.threads(), grains));
  if (threads == 1) return f(std::int64_t{0}, count);
  const auto run = [&](std::int64_t part, std::int64_t parts) {
    const std::int64_t begin = grains * part / parts * grain;
    const std::int64_t end = std::min(count, grains * (part + 1) / parts * grain);
    if (begin < end) f(begin, end);
  };
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer cannot follow libgomp's teams: it would take every part for a race, or, told to be quiet,
  // miss those that are. Threads that it can follow show what the parts do to each other.
  std::vector<std::jthread> team;
  for (int part = 1; part < threads; ++part) team.emplace_back(run, part, threads);
  run(0, threads);
#else
#pragma omp parallel num_threads(threads)
  run(omp_get_thread_num(), omp_get_num_threads());
#endif
}

}  // namespace muster::cpu
