// What single rules do over nodes that are threads of this process. `nodes_test` compares the bits of all
// rules.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "muster/parallel/nodes/elastic/directory_store.h"
#include "muster/parallel/nodes/elastic/elastic_nodes.h"
#include "muster/parallel/strategies.h"
#include "tests/parallel/every_rule.h"
#include "tests/parallel/on_nodes.h"
#include "tests/parallel/resumable.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

using Bits = std::vector<std::byte>;

constexpr Places kPlaces[] = {{2, 2}, {4, 1}, {3, 1}, {2, 3}};

/// Trains on nodes. @param train  `void (const Nodes&, std::size_t node)`.
template <typename Train>
void onAll(const Places& places, Train train) {
  VirtualNetwork network(places.nodes);
  const auto problems =
      onNodes(network, 30s, [&](const Nodes& here) { train(here, static_cast<std::size_t>(here.node())); });
  for (const auto& problem : problems) CHECK(problem == "");
}

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
  onAll(places, [&](const Nodes& here, std::size_t) {
    auto model = toy();
    ToyIterator share(batches, width);
    auto wrapper = builderOf(model, places.workers, rule).nodes(here).build();
    wrapper.fit(share, epochs);
    const Held held(model, {});
    CHECK(stateBits(model).size() > 0);
    REQUIRE(held.state.size() == first.state.size());
    for (const auto& [name, values] : held.strategy) {
      CAPTURE(name);
      const auto its = std::ranges::find(first.strategy, name, &NamedValues::name);
      REQUIRE(its != first.strategy.end());
      CHECK(std::ranges::equal(
          std::span(static_cast<const std::byte*>(values.raw()), values.bytes()),
          std::span(static_cast<const std::byte*>(its->values.raw()), its->values.bytes())));
    }
    wrapper.fit(share, 1);
    CHECK(stateBits(model) == stateBits(expected));
  });
}

/// Records what listeners on node 0 are told.
struct Told final : Listener {
  explicit Told(bool reads = false) : reads_(reads) {}
  bool readsDivergence() const override { return reads_; }
  void onMerge(const MergeEvent& event) override {
    divergences.push_back(event.divergence);
    bytes.push_back(event.bytes);
    values.emplace_back(event.values.begin(), event.values.end());
  }
  std::vector<double> divergences;
  std::vector<std::int64_t> bytes;
  std::vector<std::vector<MergeValue>> values;

 private:
  const bool reads_;
};

/// What is told in one process, and on node 0.
std::array<std::shared_ptr<Told>, 2> told(const AnyStrategy& rule, const Places& places, bool reads = false,
                                          int devices = 0) {
  const int all = places.nodes * places.workers;
  const std::array both{std::make_shared<Told>(reads), std::make_shared<Told>(reads)};
  auto expected = ruleToy();
  ToyIterator data(ruleBatches(all), kRuleWidth);
  builderOf(expected, all, rule).groups(places.nodes).listeners({both[0]}).build().fit(data, 2);
  onAll(places, [&](const Nodes& here, std::size_t) {
    auto model = ruleToy();
    ToyIterator share(ruleBatches(all), kRuleWidth);
    builderOf(model, places.workers, rule)
        .internals({.pretendedDevices = devices})
        .nodes(here)
        .listeners({both[1]})
        .build()
        .fit(share, 2);
    CHECK(stateBits(model) == stateBits(expected));
  });
  return both;
}

}  // namespace

TEST_CASE(
    "shared gradients and Adasum over nodes have the bits of one process, with few, uneven and masked "
    "batches") {
  const Updater adam = Adam{.learningRate = 0.05};
  for (const Places& places : kPlaces) {
    const int all = places.nodes * places.workers;
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

TEST_CASE(
    "shared gradients and Adasum of large models, sent in several messages, have the bits of one process") {
  constexpr std::int64_t kLarge = 270'001;
  const auto batches = randomBatches(5, 5, 1, kLarge);
  for (const AnyStrategy& rule :
       {AnyStrategy(SharedGradients{.thresholdAlgorithm = FixedThreshold{.threshold = 0.05}}),
        AnyStrategy(Adasum{.frequency = 1})})
    checkBits(rule, {2, 2}, batches, Sgd{.learningRate = 0.1}, kLarge, /*epochs=*/1);
}

TEST_CASE("the divergence of replicas over nodes equals that of one process, to rounding") {
  for (const Places& places : kPlaces)
    for (const int devices : {0, 2}) {
      CAPTURE(places.nodes);
      CAPTURE(places.workers);
      CAPTURE(devices);
      const auto [expected, told] =
          ::told(Averaging{.frequency = 2, .measureDivergence = true}, places, false, devices);
      REQUIRE(told->divergences.size() == expected->divergences.size());
      for (std::size_t m = 0; m < told->divergences.size(); ++m) {
        CHECK(told->divergences[m] > 0);
        CHECK(told->divergences[m] == doctest::Approx(expected->divergences[m]).epsilon(1e-13));
      }
      const auto [centre, elastic] =
          ::told(ElasticAveraging{.frequency = 2, .measureDistance = true}, places, false, devices);
      REQUIRE(elastic->values.size() == centre->values.size());
      for (std::size_t m = 0; m < elastic->values.size(); ++m)
        CHECK(elastic->values[m].back().value ==
              doctest::Approx(centre->values[m].back().value).epsilon(1e-13));
      const auto [ring, mixed] =
          ::told(Gossip{.graph = GossipGraph::Ring, .measureDistance = true}, places, false, devices);
      REQUIRE(mixed->values.size() == ring->values.size());
      for (std::size_t m = 0; m < mixed->values.size(); ++m)
        CHECK(mixed->values[m].back().value == doctest::Approx(ring->values[m].back().value).epsilon(1e-13));
      const auto [outer, moved] = ::told(OuterAveraging{.frequency = 2, .momentum = 0.5, .measureStep = true},
                                         places, false, devices);
      REQUIRE(moved->values.size() == outer->values.size());
      for (std::size_t m = 0; m < moved->values.size(); ++m)
        CHECK(moved->values[m].back().value == doctest::Approx(outer->values[m].back().value).epsilon(1e-13));
      const auto [plain, drifting] =
          ::told(SharedGradients{.resynchronizationFrequency = 4}, places, false, devices);
      REQUIRE(drifting->divergences.size() == plain->divergences.size());
      double largest = 0;
      for (std::size_t m = 0; m < plain->divergences.size(); ++m) {
        CHECK(drifting->divergences[m] == doctest::Approx(plain->divergences[m]).epsilon(1e-13));
        largest = std::max(largest, drifting->divergences[m]);
      }
      CHECK(largest > 0);
    }
}

TEST_CASE("the divergence in groups equals that of one sum, to the rounding of the mean") {
  const auto divergences = [](int groups) {
    const auto told = std::make_shared<Told>();
    auto model = ruleToy();
    ToyIterator data(ruleBatches(4), kRuleWidth);
    builderOf(model, 4, Averaging{.frequency = 2, .measureDivergence = true})
        .groups(groups)
        .listeners({told})
        .build()
        .fit(data, 2);
    return told->divergences;
  };
  const auto one = divergences(1), two = divergences(2);
  REQUIRE(one.size() == two.size());
  for (std::size_t m = 0; m < one.size(); ++m) CHECK(two[m] == doctest::Approx(one[m]).epsilon(1e-5));
}

TEST_CASE("a listener of node 0 reads the divergences of one process, and the bits stay the same") {
  const auto [expected, told] = ::told(Averaging{.frequency = 1}, {2, 2}, /*reads=*/true);
  REQUIRE(told->divergences.size() == expected->divergences.size());
  REQUIRE_FALSE(told->divergences.empty());
  CHECK(told->divergences.front() > 0);
  for (std::size_t m = 0; m < told->divergences.size(); ++m) {
    CHECK((told->divergences[m] > 0) == (expected->divergences[m] > 0));  // 0 with one contributor
    CHECK(told->divergences[m] == doctest::Approx(expected->divergences[m]).epsilon(1e-13));
  }
}

TEST_CASE("listeners get the bytes of shared gradients and Adasum that the network counts") {
  constexpr std::int64_t kLong = 1 << 16;
  const auto train = [&](const Places& places, const AnyStrategy& rule, Told& told) {
    VirtualNetwork network(places.nodes);
    const std::shared_ptr<Told> listener(&told, [](Told*) {});
    const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
      ToyModel model({.size = kLong, .training = {.updater = Sgd{.learningRate = 0.125}}});
      ToyIterator share(randomBatches(5, 4 * places.nodes * places.workers, 1, kLong), kLong);
      builderOf(model, places.workers, rule).nodes(here).listeners({listener}).build().fit(share, 1);
    });
    for (const auto& problem : problems) CHECK(problem == "");
    std::vector<std::int64_t> bytes;
    for (int n = 0; n < places.nodes; ++n) bytes.push_back(network.bytesSent(n));
    return bytes;
  };
  for (const Places& places : {Places{2, 1}, Places{3, 1}, Places{2, 2}}) {
    CAPTURE(places.nodes);
    CAPTURE(places.workers);
    // A map of all elements each iteration; the residuals at the end in full.
    Told told;
    const auto sent =
        train(places, SharedGradients{.thresholdAlgorithm = FixedThreshold{.threshold = 1e-4}}, told);
    const std::int64_t message = 16 + kLong / 4;
    REQUIRE(told.bytes.size() >= 4);
    for (std::size_t m = 0; m < 3; ++m) CHECK(told.bytes[m] == message);
    const auto others = places.nodes - 1;
    const std::int64_t width = places.workers > 1 ? 8 : 4;  // sums of several workers are in float64
    const std::int64_t residual = others * kLong * (width + 8) / places.nodes;  // there, and the mean back
    const std::int64_t least = 4 * places.workers * others * message + residual;
    for (const auto bytes : sent) {
      CHECK(bytes >= least - 4096);
      CHECK(bytes < least + 20'000);
    }
  }
  Told two, four;
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

TEST_CASE("if a node fails, every model is left at the last merge of shared gradients and of Adasum") {
  for (const AnyStrategy& rule :
       {AnyStrategy(SharedGradients{.resynchronizationFrequency = 4}), AnyStrategy(Adasum{.frequency = 2})}) {
    CAPTURE(rule.make()->describe());
    VirtualNetwork network(2);
    std::array<std::vector<float>, 2> parameters;
    std::array<std::int64_t, 2> iterations{};
    const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
      auto model = ruleToy();
      if (here.node() == 1)
        model.control().onStep = [](const Batch& batch) {
          if (batch.stamp.iteration == 5) throw std::runtime_error("the disk is full");
        };
      ToyIterator share(ruleBatches(4), kRuleWidth);
      auto wrapper = builderOf(model, 2, rule).nodes(here).build();
      const auto problem = thrown<TrainingError>([&] { wrapper.fit(share, 3); });
      parameters[static_cast<std::size_t>(here.node())] = model.parameters();
      iterations[static_cast<std::size_t>(here.node())] = model.iteration();
      throw Error(problem);
    });
    CHECK(contains(problems[0], "node 1 (virtual1) "));
    CHECK(contains(problems[1], "the disk is full"));
    CHECK(parameters[0] == parameters[1]);
    CHECK(iterations[0] == iterations[1]);
    CHECK(iterations[0] == (rule.as<Adasum>() ? 4 : 5));
  }
}

TEST_CASE("rules that need a fixed number of workers are refused if nodes join and leave") {
  const TemporaryDirectory folder;
  const auto elastic = std::make_shared<ElasticNodes>(
      std::make_unique<DirectoryStore>(folder / "store"), Membership::Options{.silence = 5s, .patience = 60s},
      [](NodeStore&, const Generation&) -> std::shared_ptr<NodeLink> { return nullptr; });
  auto model = ruleToy();
  CHECK(thrown<InvalidArgument>([&] { builderOf(model, 2, Adasum{}).nodes(Nodes(elastic)).build(); }) ==
        "nodes: adaptive summation every 10 iterations cannot train over elastic nodes, because "
        "their number changes: adasum: the number of workers must be a power of two, because workers are "
        "merged in pairs, got 6");
  ToyIterator data(ruleBatches(2), kRuleWidth);
  builderOf(model, 2, SharedGradients{}).nodes(Nodes(elastic)).build().fit(data, 1);
  CHECK(model.epoch() == 1);
}
