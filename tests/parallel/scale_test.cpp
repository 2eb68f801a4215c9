// Far more workers than cores, under every averaging rule: all finish, and hold no more after more rounds.
// With 64 workers by itself; with MUSTER_LONG set 64, 256 and 1,024, and a table of the time of a round.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/parallel/every_rule.h"
#include "tests/support/held.h"
#include "tests/support/small_examples.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr int kRounds = 6;  // iterations of each worker in an epoch

/// Trains several epochs and looks at what is held before and after the last. @return milliseconds of a
/// round.
double train(const NamedRule& rule, int workers) {
  MultiLayerNetwork model({.seed = 3,
                           .updater = Nesterovs{.learningRate = 0.01, .momentum = 0.5},
                           .inputShape = {6},
                           .layers = {Output{.classes = 4}}});
  model.init();
  SmallExamples data(kRounds * workers);
  auto wrapper = ParallelWrapper::Builder(model)
                     .workers(workers)
                     .strategy(rule.options)
                     .prefetchBuffer(2)
                     .pinThreads(false)
                     .build();
  wrapper.fit(data, 2);
  const Held before = Held::now();
  const auto begin = std::chrono::steady_clock::now();
  wrapper.fit(data, 2);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  const Held after = Held::now();
  CHECK(after.objects == before.objects);
  CHECK(after.threads == before.threads);
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.mebibytes <= before.mebibytes + kMebibytesOfNoise);
  CHECK(model.iteration() == 4 * kRounds);
  return time.count() / (2 * kRounds);
}

}  // namespace

TEST_CASE("64 workers and more on few cores, every rule: all finish, and memory is flat") {
  const bool whole = std::getenv("MUSTER_LONG") != nullptr;
  const std::vector<int> sizes = whole ? std::vector{64, 256, 1024} : std::vector{64};
  std::string table = "milliseconds of an iteration";
  for (const int workers : sizes) table += fmt::format(" | {} workers", workers);
  for (const NamedRule& rule : everyRule()) {
    CAPTURE(rule.name);
    table += "\n" + rule.name;
    for (const int workers : sizes) {
      CAPTURE(workers);
      table += fmt::format(" | {:.2f}", train(rule, rule.workers(workers)));
    }
    if (whole) std::fprintf(stderr, "%s\n", rule.name.c_str());
  }
  MESSAGE(table);
}
