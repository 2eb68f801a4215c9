#pragma once

#include <algorithm>
#include <vector>

#include "muster/core/device/context.h"
#include "tests/bench/timing.h"

namespace muster::bench {

struct Repeats {
  int rounds = 5;
  double milliseconds = 50;  ///< a round
};

/// Seconds per call of `work` on a device: the median of rounds. After a warm-up, each round runs a graph of
/// many calls, so that launch costs do not count.
template <typename Work>
double secondsOf(const Work& work, Context& context, const Repeats& options) {
  const auto run = [&](auto&& enqueue) {
    context.synchronize();
    const auto begin = Clock::now();
    enqueue();
    context.synchronize();
    return secondsSince(begin);
  };
  run(work);
  const double once = run(work);
  const int repeats = static_cast<int>(std::clamp(options.milliseconds / 1000 / once, 1.0, 2000.0));
  Graph graph(context, [&] {
    for (int i = 0; i < repeats; ++i) work();
  });
  run([&] { graph.launch(); });
  std::vector<double> seconds;
  for (int round = 0; round < options.rounds; ++round)
    seconds.push_back(run([&] { graph.launch(); }) / repeats);
  return medianOf(seconds);
}

}  // namespace muster::bench
