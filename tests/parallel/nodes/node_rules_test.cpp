// What single rules do over nodes that are threads of this process. `nodes_test` compares the bits of all
// rules.

#include "muster/parallel/strategies.h"
#include "tests/parallel/elastic_alone.h"
#include "tests/parallel/on_nodes.h"
#include "tests/parallel/resumable.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/on_merge.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

using Bits = std::vector<std::byte>;

constexpr Places kPlaces[] = {{2, 2}, {4, 1}, {3, 1}, {2, 3}};

/// Checks the state of the model, also the strategy's, on all nodes against one process.
void checkBits(const AnyStrategy& rule, const Places& places, const std::vector<ToyBatch>& batches,
               const Updater& updater = Nesterovs{.learningRate = 0.5, .momentum = 0.5},
               std::int64_t width = kRuleWidth, std::int64_t epochs = 3) {
  CAPTURE(rule.make()->describe());
  CAPTURE(places.nodes);
  CAPTURE(places.workers);
  const auto toy = [&] {
    return ToyModel({.size = width, .training = {.updater = updater}, .statistics = true});
  };
  auto expected = toy();
  ToyIterator data(batches, width);
  auto together = builderOf(expected, places.nodes * places.workers, rule).groups(places.nodes).build();
  together.fit(data, epochs);
  const Held first(expected, {});
  together.fit(data, 1);
  onAll(places.nodes, [&](const Nodes& here) {
    auto model = toy();
    ToyIterator share(batches, width);
    auto wrapper = builderOf(model, places.workers, rule).nodes(here).build();
    wrapper.fit(share, epochs);
    const Held held(model, {});
    CHECK(stateBits(model).size() > 0);
    REQUIRE(held.state.size() == first.state.size());
    for (const auto& [name, values] : held.strategy) {
      CAPTURE(name);
      const auto expectedOf = std::ranges::find(first.strategy, name, &NamedValues::name);
      REQUIRE(expectedOf != first.strategy.end());
      CHECK(std::ranges::equal(
          std::span(static_cast<const std::byte*>(values.raw()), values.bytes()),
          std::span(static_cast<const std::byte*>(expectedOf->values.raw()), expectedOf->values.bytes())));
    }
    wrapper.fit(share, 1);
    CHECK(stateBits(model) == stateBits(expected));
  });
}

/// What merges report.
struct Reports {
  std::vector<double> divergences, values;  // the last value of each
  std::vector<std::int64_t> bytes;
  std::shared_ptr<Listener> listener(bool reads = false) {
    return onMerge(
        [this](const MergeEvent& event) {
          divergences.push_back(event.divergence);
          bytes.push_back(event.bytes);
          values.push_back(event.values.empty() ? 0 : event.values.back().value);
        },
        reads);
  }
};

/// Checks that merges report the same on node 0 as in one process, to rounding. @return the reports of node 0
Reports checkReports(const AnyStrategy& rule, const Places& places, bool reads = false, int devices = 0) {
  CAPTURE(rule.make()->describe());
  CAPTURE(places.nodes);
  CAPTURE(places.workers);
  CAPTURE(devices);
  Reports expected, reports;
  auto together = ruleToy();
  ToyIterator data(ruleBatches(places.all()), kRuleWidth);
  const auto listener = expected.listener(reads), onNode0 = reports.listener(reads);
  builderOf(together, places.all(), rule).groups(places.nodes).listeners({listener}).build().fit(data, 2);
  onAll(places.nodes, [&](const Nodes& here) {
    auto model = ruleToy();
    ToyIterator share(ruleBatches(places.all()), kRuleWidth);
    builderOf(model, places.workers, rule)
        .internals({.pretendedDevices = devices})
        .nodes(here)
        .listeners({onNode0})
        .build()
        .fit(share, 2);
    CHECK(stateBits(model) == stateBits(together));
  });
  REQUIRE(reports.divergences.size() == expected.divergences.size());
  REQUIRE_FALSE(reports.divergences.empty());
  for (std::size_t m = 0; m < reports.divergences.size(); ++m) {
    CHECK((reports.divergences[m] > 0) == (expected.divergences[m] > 0));  // 0 with one contributor
    CHECK(reports.divergences[m] == doctest::Approx(expected.divergences[m]).epsilon(1e-13));
    CHECK(reports.values[m] == doctest::Approx(expected.values[m]).epsilon(1e-13));
  }
  return reports;
}

}  // namespace

TEST_CASE("shared gradients and Adasum have the bits of one process, with few, uneven, masked batches") {
  const Updater adam = Adam{.learningRate = 0.05};
  for (const Places& places : kPlaces) {
    const int all = places.all();
    // Few batches and masks, where each node has several workers and where each has one.
    const bool unusual = places.nodes == places.workers || places.nodes == 3;
    const std::vector<AnyStrategy> rules = {
        SharedGradients{.resynchronizationFrequency = 4},
        SharedGradients{.thresholdAlgorithm = AdaptiveThreshold{.initial = 0.05},
                        .residualClipping = 3,
                        .residualClippingFrequency = 2},
        SharedGradients{.thresholdAlgorithm = FixedThreshold{.threshold = 1e-4},
                        .resynchronizationFrequency = 3,
                        .updaterState = UpdaterState::Keep},
        Adasum{.frequency = 2}, Adasum{.frequency = 3, .updaterState = UpdaterState::Keep}};
    for (const auto& rule : rules) {
      if (!runsOverNodes(rule, all)) continue;
      checkBits(rule, places, ruleBatches(all));
      if (!unusual) continue;
      for (const int count : {1, all - 1, all + 1})
        checkBits(rule, places, randomBatches(3, count, 2, kRuleWidth, /*ragged=*/true));
      auto masked = ruleBatches(all);
      for (std::size_t b = 1; b < masked.size(); b += 3)
        masked[b].mask.assign(masked[b].values.size() / kRuleWidth, 0.0f);
      for (auto& batch : masked)
        if (batch.mask.empty()) batch.mask.assign(batch.values.size() / kRuleWidth, 1.0f);
      checkBits(rule, places, masked, adam);
    }
  }
}

TEST_CASE("shared gradients and Adasum of large models, in several messages, have the bits of one process") {
  constexpr std::int64_t kLarge = 270'001;
  const auto batches = randomBatches(5, 5, 1, kLarge);
  for (const AnyStrategy& rule :
       {AnyStrategy(SharedGradients{.thresholdAlgorithm = FixedThreshold{.threshold = 0.05}}),
        AnyStrategy(Adasum{.frequency = 1})})
    checkBits(rule, {2, 2}, batches, Sgd{.learningRate = 0.1}, kLarge, /*epochs=*/1);
}

TEST_CASE("divergence, distances and steps over nodes equal those of one process, to rounding") {
  for (const Places& places : kPlaces)
    for (const int devices : {0, 2}) {
      const auto report = [&](const AnyStrategy& rule) { return checkReports(rule, places, false, devices); };
      for (const double one : report(Averaging{.frequency = 2, .measureDivergence = true}).divergences)
        CHECK(one > 0);
      report(ElasticAveraging{.frequency = 2, .measureDistance = true});
      report(Gossip{.graph = GossipGraph::Ring, .measureDistance = true});
      report(OuterAveraging{.frequency = 2, .momentum = 0.5, .measureStep = true});
      CHECK(std::ranges::max(report(SharedGradients{.resynchronizationFrequency = 4}).divergences) > 0);
    }
}

TEST_CASE("a listener of node 0 reads the divergences of one process, and the bits stay the same") {
  CHECK(checkReports(Averaging{.frequency = 1}, {2, 2}, /*reads=*/true).divergences.front() > 0);
}

TEST_CASE("the divergence in groups equals that of one sum, to the rounding of the mean") {
  const auto divergences = [](int groups) {
    Reports reports;
    auto model = ruleToy();
    ToyIterator data(ruleBatches(4), kRuleWidth);
    builderOf(model, 4, Averaging{.frequency = 2, .measureDivergence = true})
        .groups(groups)
        .listeners({reports.listener()})
        .build()
        .fit(data, 2);
    return reports.divergences;
  };
  const auto one = divergences(1), two = divergences(2);
  REQUIRE(one.size() == two.size());
  for (std::size_t m = 0; m < one.size(); ++m) CHECK(two[m] == doctest::Approx(one[m]).epsilon(1e-5));
}

TEST_CASE("listeners get the bytes of shared gradients and Adasum that the network counts") {
  constexpr std::int64_t kLong = 1 << 16;
  const auto train = [&](const Places& places, const AnyStrategy& rule, Reports& reports) {
    VirtualNetwork network(places.nodes);
    const auto listener = reports.listener();
    onAll(network, [&](const Nodes& here) {
      ToyModel model({.size = kLong, .training = {.updater = Sgd{.learningRate = 0.125}}});
      ToyIterator share(randomBatches(5, 4 * places.nodes * places.workers, 1, kLong), kLong);
      builderOf(model, places.workers, rule).nodes(here).listeners({listener}).build().fit(share, 1);
    });
    std::vector<std::int64_t> bytes;
    for (int n = 0; n < places.nodes; ++n) bytes.push_back(network.bytesSent(n));
    return bytes;
  };
  for (const Places& places : {Places{2, 1}, Places{3, 1}, Places{2, 2}}) {
    CAPTURE(places.nodes);
    CAPTURE(places.workers);
    // A map of all elements each iteration; the residuals at the end in full.
    Reports reports;
    const auto sent =
        train(places, SharedGradients{.thresholdAlgorithm = FixedThreshold{.threshold = 1e-4}}, reports);
    const std::int64_t message = 16 + kLong / 4;
    REQUIRE(reports.bytes.size() >= 4);
    for (std::size_t m = 0; m < 3; ++m) CHECK(reports.bytes[m] == message);
    const auto others = places.nodes - 1;
    const std::int64_t width = places.workers > 1 ? 8 : 4;  // sums of several workers are in float64
    const std::int64_t residual = others * kLong * (width + 8) / places.nodes;  // there, and the mean back
    const std::int64_t least = 4 * places.workers * others * message + residual;
    for (const auto bytes : sent) {
      CHECK(bytes >= least - 4096);
      CHECK(bytes < least + 20'000);
    }
  }
  Reports two, four;
  const auto ofTwo = train({2, 1}, Adasum{.frequency = 1}, two);
  for (const auto bytes : two.bytes) CHECK(bytes == 4 * kLong);
  // Worker 1 sends its replica and half of the result, worker 0 half of its sum and half of the result.
  CHECK(ofTwo[1] >= 4 * (4 * kLong + 2 * kLong));
  CHECK(ofTwo[1] < 4 * (4 * kLong + 2 * kLong) + 20'000);
  CHECK(ofTwo[0] >= 4 * 4 * kLong);
  CHECK(ofTwo[0] < 4 * 4 * kLong + 20'000);
  const auto ofFour = train({4, 1}, Adasum{.frequency = 1}, four);
  for (const auto bytes : four.bytes) CHECK(bytes == 4 * kLong);
  for (const std::size_t n : {1, 2, 3}) {
    CHECK(ofFour[n] >=
          4 * (4 * kLong + 3 * kLong));  // its sum once; its quarter of the result to three nodes
    CHECK(ofFour[n] < 4 * (4 * kLong + 3 * kLong) + 30'000);
  }
}

TEST_CASE("rules that need a fixed number of workers are refused if nodes join and leave") {
  const ElasticAlone elastic;
  auto model = ruleToy();
  CHECK_REFUSED(
      builderOf(model, 2, Adasum{}).nodes(elastic.nodes()).build(),
      "nodes: adaptive summation every 10 iterations cannot train over elastic nodes, because "
      "their number changes: adasum: the number of workers must be a power of two, because workers are "
      "merged in pairs, got 6");
  ToyIterator data(ruleBatches(2), kRuleWidth);
  builderOf(model, 2, SharedGradients{}).nodes(elastic.nodes()).build().fit(data, 1);
  CHECK(model.epoch() == 1);
}
