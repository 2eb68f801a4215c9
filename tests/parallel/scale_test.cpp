// Far more workers than cores, with a rule of each kind: all finish, and more rounds do not take more
// resources. 64 workers by default; with MUSTER_LONG set, 64, 256 and 1,024 workers. It prints a table of the
// time per round.
#include <doctest/doctest.h>

#include <cstdio>

#include "muster/core/nn/multi_layer_network.h"
#include "tests/parallel/builder_of.h"
#include "tests/parallel/every_rule.h"
#include "tests/support/held.h"
#include "tests/support/small_examples.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr int kRounds = 6;  // iterations of each worker in an epoch
constexpr int kTimed = 3;   // epochs

/// Trains several epochs and compares the resources before and after the last ones. @return milliseconds per
/// iteration in the fastest of these, because other programs slow some down.
double millisecondsOf(const NamedRule& rule, int workers) {
  MultiLayerNetwork model({.seed = 3,
                           .updater = Nesterovs{.learningRate = 0.01, .momentum = 0.5},
                           .inputShape = {6},
                           .layers = {Output{.classes = 4}}});
  model.init();
  SmallExamples data(kRounds * workers);
  auto wrapper = builderOf(model, workers, rule.options).prefetchBuffer(2).build();
  wrapper.fit(data, 2);
  const Held before = Held::now();
  double least = std::numeric_limits<double>::infinity();
  for (int epoch = 0; epoch < kTimed; ++epoch) {
    const auto begin = std::chrono::steady_clock::now();
    wrapper.fit(data);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    least = std::min(least, time.count() / kRounds);
  }
  const Held after = Held::now();
  CHECK(after.objects == before.objects);
  CHECK(after.threads == before.threads);
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.mebibytes <= before.mebibytes + mebibytesOfNoise(before.threads));
  CHECK(model.iteration() == (2 + kTimed) * kRounds);
  return least;
}

}  // namespace

TEST_CASE("64 workers and more on few cores finish under every rule, and memory does not grow") {
  const std::vector<int> sizes = whole() ? std::vector{64, 256, 1024} : std::vector{64};
  std::string table = "milliseconds of an iteration";
  for (const int workers : sizes) table += fmt::format(" | {} workers", workers);
  for (const NamedRule& rule : someRules()) {
    CAPTURE(rule.name);
    std::vector<double> times;
    for (const int workers : sizes) {
      CAPTURE(workers);
      times.push_back(millisecondsOf(rule, rule.workers(workers)));
    }
    table += fmt::format("\n{} | {:.2f}", rule.name, fmt::join(times, " | "));
    if (whole()) std::fprintf(stderr, "%s\n", rule.name.c_str());
  }
  MESSAGE(table);
}
