// What single rules do over nodes that are threads of this process. `nodes_test` compares the bits of all
// rules.

#include "muster/parallel/strategies.h"
#include "tests/parallel/elastic_alone.h"
#include "tests/parallel/every_rule.h"
#include "tests/parallel/on_nodes.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/on_merge.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr Places kPlaces[] = {{2, 2}, {4, 1}, {3, 1}, {2, 3}};

/// What merges report.
struct Reports {
  std::vector<double> divergences, values;  // the last value of each
  std::shared_ptr<Listener> listener(bool reads = false) {
    return onMerge(
        [this](const MergeEvent& event) {
          divergences.push_back(event.divergence);
          values.push_back(event.values.empty() ? 0 : event.values.back().value);
        },
        reads);
  }
};

/// Checks that merges report the same on node 0 as in one process, to rounding. @return the reports of node 0
Reports checkReports(const AnyStrategy& rule, const Places& places, bool reads = false, int devices = 0) {
  CAPTURE(rule.make()->describe());
  CAPTURE(places);
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
  const auto check = [](const AnyStrategy& rule, const Places& places, const std::vector<ToyBatch>& batches,
                        const Updater& updater = Nesterovs{.learningRate = 0.5, .momentum = 0.5}) {
    const auto toy = [&] {
      return ToyModel({.size = kRuleWidth, .training = {.updater = updater}, .statistics = true});
    };
    checkLikeOneProcess(rule, places, toy, [&](ParallelWrapper& wrapper, Model&) {
      ToyIterator data(batches, kRuleWidth);
      wrapper.fit(data, 3);
      wrapper.fit(data, 1);
    });
  };
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
      check(rule, places, ruleBatches(all));
      if (!unusual) continue;
      for (const int count : {1, all - 1, all + 1})
        check(rule, places, randomBatches(3, count, 2, kRuleWidth, /*ragged=*/true));
      auto masked = ruleBatches(all);
      for (std::size_t b = 0; b < masked.size(); ++b)
        masked[b].mask.assign(masked[b].values.size() / kRuleWidth, b % 3 == 1 ? 0.0f : 1.0f);
      check(rule, places, masked, Adam{.learningRate = 0.05});
    }
  }
}

TEST_CASE("shared gradients and Adasum of large models, in several messages, have the bits of one process") {
  constexpr std::int64_t kLarge = 270'001;
  const auto toy = [] {
    return ToyModel({.size = kLarge, .training = {.updater = Sgd{.learningRate = 0.1}}});
  };
  const auto fit = [batches = randomBatches(5, 5, 1, kLarge)](ParallelWrapper& wrapper, Model&) {
    ToyIterator data(batches, kLarge);
    wrapper.fit(data, 2);
  };
  checkLikeOneProcess(SharedGradients{.thresholdAlgorithm = FixedThreshold{.threshold = 0.05}}, {2, 2}, toy,
                      fit);
  checkLikeOneProcess(Adasum{.frequency = 1}, {2, 2}, toy, fit);
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
