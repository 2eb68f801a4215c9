#include "muster/parallel/nodes.h"

#include "muster/core/listeners/early_stopping.h"
#include "muster/core/listeners/evaluation_listener.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/parallel/elastic_alone.h"
#include "tests/parallel/mixing_rules.h"
#include "tests/parallel/on_nodes.h"
#include "tests/parallel/resumable.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/environment.h"
#include "tests/support/log_lines.h"
#include "tests/support/on_merge.h"
#include "tests/support/recording_listener.h"
#include "tests/support/small_examples.h"
#include "tests/support/thrown.h"
#include "tests/support/unrewound.h"

// Trainings over nodes that are threads of this process. `nodes_mpi_test` uses processes, `node_losses_test`
// has failures.

using namespace muster;
using namespace muster::test;

namespace {

using Bits = std::vector<std::byte>;

/// Whether a merge treats workers differently: only then do four nodes do what two or three do not.
bool joinsWorkersApart(const AnyStrategy& rule) {
  return rule.as<Adasum>() || rule.as<Gossip>() || rule.as<HierarchicalAveraging>();
}

/// Two fits on these batches.
auto fitTwice(const std::vector<ToyBatch>& batches) {
  return [batches](ParallelWrapper& wrapper, Model&) {
    ToyIterator data(batches, kRuleWidth);
    wrapper.fit(data, 3);
    wrapper.fit(data, 1);
  };
}

/// A rule that merges nothing, and cannot be used for new nodes while `broken`.
struct Breakable {
  struct Rule final : Strategy {
    explicit Rule(const bool& b) : broken(b) {}
    std::string describe() const override { return "breakable"; }
    StrategyTraits traits(int) const override {
      require(!broken, "boom");
      return {};
    }
    RoundPlan plan(const TrainingProgress&) override { return {.iterations = 1}; }
    void land(int, const Round&, MergeOps&) override {}
    const bool& broken;
  };
  const bool* broken = nullptr;

  void validate() const {}
  std::unique_ptr<Strategy> make() const { return std::make_unique<Rule>(*broken); }
};

}  // namespace

TEST_CASE("every rule over nodes has the bits of one process that adds up in as many groups") {
  for (const Places places : {Places{2, 2}, Places{3, 1}, Places{2, 1}, Places{4, 1}})
    for (const auto& rule : someRules()) {
      if (!runsOverNodes(rule.options, places.all())) continue;
      if (places.nodes == 4 && !joinsWorkersApart(rule.options)) continue;
      checkLikeOneProcess(rule.options, places, ruleToy, fitTwice(ruleBatches(places.all())));
    }
}

TEST_CASE("nodes may have fewer batches than workers, and than nodes") {
  for (const int count : {1, 2, 3, 5})
    checkLikeOneProcess(Averaging{.frequency = 2}, {3, 2}, ruleToy,
                        fitTwice(randomBatches(3, count, 2, kRuleWidth)));
}

TEST_CASE(
    "rules that mix replicas over nodes have the bits of one process in groups, also with few batches") {
  std::vector<Places> every = {{2, 2}, {3, 1}, {2, 4}};
  if (whole()) every.insert(every.end(), {{4, 1}, {3, 2}});
  for (const auto& places : every) {
    const int all = places.all();
    auto rules = mixingRules(all);
    if (all == 8)  // groups of a part of a node, of a node, and of two nodes
      rules.push_back(HierarchicalAveraging{
          .levels = {{.period = 1, .group = 2}, {.period = 2, .group = 4}, {.period = 4}}});
    if (all == 6)  // one of the groups has workers of two nodes
      rules.push_back(HierarchicalAveraging{.levels = {{.period = 1, .group = 3}, {.period = 3}}});
    for (const auto& rule : rules)
      for (const int batches : {7 * all + 1, all - 1, 1})
        if (batches > all || all <= 4)
          checkLikeOneProcess(rule, places, ruleToy,
                              fitTwice(randomBatches(5, batches, 4, kRuleWidth, /*ragged=*/true)));
  }
}

TEST_CASE("a stream that reset() does not rewind loses no batch on any node") {
  std::mutex mutex;
  std::set<float> seen;
  const auto train = [&](const Nodes& here) {
    ToyModel own;
    own.control().onStep = [&](const Batch& batch) {
      const std::scoped_lock lock(mutex);
      const float value = batch.features[0].value.data<float>()[0];
      CHECK(seen.insert(value).second);
      CHECK(value == static_cast<float>(batch.stamp.sequence + 1));
      CHECK(batch.stamp.firstExample == batch.stamp.sequence);
    };
    auto data = ToyIterator::ofValues({1, 2, 3, 4, 5, 6, 7});
    Unrewound stream(data);
    builderOf(own, 2, Averaging{.frequency = 2}).nodes(here).build().fit(stream);
  };
  onAll(2, train);
  CHECK(seen.size() == 7);
  seen.clear();
  train(ElasticAlone().nodes());
  CHECK(seen.size() == 7);
}

TEST_CASE(
    "if nothing can be made for new nodes, listeners are told of the end, and another fit() may follow") {
  bool broken = false;
  const auto listener = mergedListener([&](const RecordedCall& call, Trainer& trainer) {
    if (call.event == "fitEnd") CHECK(trainer.workerTimes().size() == 2);
    if (call.event != "merge" || call.iteration > 1) return;
    broken = true;
    throw NodeFailure("as if another node were lost");
  });
  ToyModel model;
  auto data = ToyIterator::ofValues({2, 6, 2, 6});
  const ElasticAlone elastic;
  auto wrapper = builderOf(model, 2, Breakable{&broken}).nodes(elastic.nodes()).listeners({listener}).build();
  const LogLines log;
  CHECK_CONTAINS(thrown<Error>([&] { wrapper.fit(data); }), "boom");
  CHECK_CONTAINS(log.all().back(), "generation 2: this is node 0 of 1, from iteration 1");
  CHECK(listener->order() == "fitStart epochStart merge fitEnd");
  CHECK(wrapper.workerTimes().size() == 2);
  CHECK_CONTAINS(thrown<Error>([&] { static_cast<void>(wrapper.plan()); }), "failed while its nodes changed");
  broken = false;
  wrapper.fit(data);
  CHECK(model.epoch() == 1);
  CHECK(listener->order() == "fitStart epochStart merge fitEnd fitStart epochStart merge epochEnd fitEnd");
}

TEST_CASE("merged listeners are called on node 0 only, and a stop on one node stops all") {
  std::array<int, 2> merges{};
  const auto bits = fromAll(2, [&](const Nodes& here) {
    int& own = merges.at(static_cast<std::size_t>(here.node()));
    const auto stopping = onMerge([&](const MergeEvent& event) {
      CHECK(event.examples > 0);
      if (++own == 3) event.trainer.stopFit();
    });
    auto model = ruleToy();
    ToyIterator share(ruleBatches(4), kRuleWidth);
    builderOf(model, 2, Averaging{.frequency = 1}).nodes(here).listeners({stopping}).build().fit(share, 50);
    return stateBits(model);  // with the iteration
  });
  CHECK(merges[0] >= 3);
  CHECK(merges[0] <= 5);
  CHECK(merges[1] == 0);
  CHECK(bits[0] == bits[1]);
}

TEST_CASE("early stopping restores the best state on every node, and another fit() continues from there") {
  const auto stopping = [] {
    return std::make_shared<EarlyStopping>(EarlyStoppingOptions{
        .monitor = Monitor::Own,
        .mode = MonitorMode::Min,
        .measure = [](Trainer& trainer) { return trainer.model().epoch() == 2 ? 1.0 : 3.0; },
        .patience = 2,
        .restoreBest = true,
        .sink = [](std::string_view) {}});
  };
  for (const AnyStrategy& rule : std::vector<AnyStrategy>{
           Averaging{.frequency = 2}, OuterAveraging{.frequency = 2, .rate = 0.7, .momentum = 0.5}}) {
    CAPTURE(rule.make()->describe());
    auto expected = ruleToy();
    ToyIterator data(ruleBatches(4), kRuleWidth);
    auto together = builderOf(expected, 4, rule).groups(2).listeners({stopping()}).build();
    together.fit(data, 20);
    CHECK(expected.epoch() == 2);
    const Bits best = stateBits(expected);
    together.fit(data, 1);
    onAll(2, [&](const Nodes& here) {
      auto model = ruleToy();
      ToyIterator share(ruleBatches(4), kRuleWidth);
      const auto listener = stopping();
      auto wrapper = builderOf(model, 2, rule).nodes(here).listeners({listener}).build();
      wrapper.fit(share, 20);
      CHECK(stateBits(model) == best);
      CHECK(model.epoch() == 2);
      CHECK(contains(listener->reason(), "has not improved for 2 epochs; the best was 1 after epoch 2"));
      wrapper.fit(share, 1);
      CHECK(stateBits(model) == stateBits(expected));
    });
  }
}

TEST_CASE("replicas are collected while the other nodes wait in an evaluation") {
  const auto network = [] {
    return MultiLayerNetwork({.inputShape = {6}, .layers = {Dense{.units = 5}, Output{.classes = 4}}});
  };
  const Gossip rule{.graph = GossipGraph::Ring, .updaterState = UpdaterState::Keep};
  std::vector<Held> held;
  const auto bits = fromAll(3, [&](const Nodes& here) {
    auto model = network();
    model.init();
    SmallExamples data(40), validation(16);
    const EvaluationOptions often{.everyIterations = 1, .sink = [](std::string_view) {}};
    const auto evaluation = std::make_shared<EvaluationListener>(validation, often);
    builderOf(model, 1, rule)
        .nodes(here)
        .listeners({std::make_shared<Holder>(&held), evaluation})
        .build()
        .fit(data, 2);
    return stateBits(model);
  });
  REQUIRE(held.size() >= 3);
  onAll(3, [&](const Nodes& here) {
    auto model = network();
    model.init();
    held[1].giveTo(model);
    SmallExamples data(40);
    builderOf(model, 1, rule).nodes(here).build().fit(data, 2 - model.epoch());
    CHECK(stateBits(model) == bits[0]);
  });
}

TEST_CASE("nodes whose layers have different settings, or networks different seeds, are refused") {
  const auto train = [](double rate, std::uint64_t seed) {
    VirtualNetwork network(2);
    return onNodes(network, std::chrono::seconds(30), [&](const Nodes& here) {
      const bool first = here.node() == 0;
      MultiLayerNetwork model(
          {.seed = first ? 1 : seed,
           .inputShape = {6},
           .layers = {Dense{.units = 5}, Dropout{.rate = first ? 0.5 : rate}, Output{.classes = 4}}});
      model.init();
      SmallExamples data(8);
      builderOf(model, 1, Averaging{}).nodes(here).build().fit(data, 1);
    });
  };
  const std::string problem =
      "nodes: node 0 (virtual0) and node 1 (virtual1) differ in the configuration of the model, which must "
      "be "
      "the same on all nodes";
  CHECK(train(0.25, 1) == std::vector(2, problem));
  CHECK(train(0.5, 2) == std::vector(2, problem));
  CHECK(train(0.5, 1) == std::vector<std::string>(2));
}

TEST_CASE("options that are not available over nodes are refused by name") {
  const std::pair<AnyStrategy, const char*> rules[] = {
      {Gossip{.graph = GossipGraph::Ring, .codec = Int8Codec{}},
       "codec: replicas on a ring cannot be sent encoded"},
      {HierarchicalAveraging{.levels = {{.period = 1, .group = 2}, {.period = 2}}, .codec = Int8Codec{}},
       "codec: replicas of groups cannot be sent encoded"},
      {HierarchicalAveraging{.levels = {{.period = 1, .group = 3}, {.period = 2}}},
       "groups of 3 do not divide the 4 workers"},
      {Adasum{.codec = Int8Codec{}}, "still send the sums of pairs unencoded"},
      {AsynchronousOuter{}, "arrive, which is not supported over nodes"}};
  auto own = ruleToy();
  const auto refusal = [](const ParallelWrapper::Builder& builder) {
    return thrown<InvalidArgument>([&] { ParallelWrapper::Builder(builder).build(); });
  };
  onAll(2, [&](const Nodes& here) {
    auto model = ruleToy();
    for (const auto& [rule, problem] : rules)
      CHECK_CONTAINS(refusal(builderOf(model, 2, rule).nodes(here)), problem);
    CHECK_CONTAINS(refusal(builderOf(model, 4, Averaging{}).nodes(here).groups(2)), "each node is a group");
  });
  CHECK_CONTAINS(refusal(builderOf(own, 3, Averaging{}).groups(2)), "groups: 2 do not divide 3 workers");
  // Groups that span nodes, if these join and leave.
  const ElasticAlone elastic;
  const auto elastically = [&](int workers, const HierarchicalAveraging& rule) {
    return refusal(builderOf(own, workers, rule).nodes(elastic.nodes()));
  };
  CHECK(elastically(4, {.levels = {{.period = 1, .group = 2}, {.period = 2, .group = 4}, {.period = 3}}}) ==
        "");
  CHECK_CONTAINS(elastically(2, {.levels = {{.period = 1, .group = 4}, {.period = 2}}}),
                 "cannot train over elastic nodes, because their number changes: ");
  CHECK_CONTAINS(elastically(4, {.levels = {{.period = 1, .group = 2}, {.period = 2, .group = 4}}}),
                 "the last level must merge all 8 workers, got groups of 4");
}

TEST_CASE("a program that a launcher started several times without connecting its nodes is refused") {
  const Environment launched("OMPI_COMM_WORLD_SIZE", "2");
  auto model = ruleToy();
  CHECK_CONTAINS(thrown<InvalidArgument>([&] { builderOf(model, 1, Averaging{}).build(); }),
                 "a launcher has started 2 processes");
  builderOf(model, 1, Averaging{}).nodes(Nodes()).build();
}
