#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "muster/core/device/context.h"

namespace muster::cpu {

/// Calls f(begin, end) on parts of [0, count), one for each of the context's threads, and waits for all.
///
/// Parts begin at multiples of `grain` (at least 1) and have at least `grain` elements; a single part runs
/// inline. The parts depend on count, grain and threads only. `f` must not throw.
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
#pragma omp parallel num_threads(threads)
  run(omp_get_thread_num(), omp_get_num_threads());
}

/// Calls f(thread, begin, end) on one part of [0, count) for each of the context's threads, and waits for
/// all; `thread` is from 0 to threads() - 1, and a part may be empty. `f` must not throw.
template <typename F>
void parallelParts(Context& context, std::int64_t count, F f) {
  const std::int64_t threads = context.threads();
  parallelFor(context, threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) f(t, count * t / threads, count * (t + 1) / threads);
  });
}

}  // namespace muster::cpu
