#include "muster/parallel/nodes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "muster/core/listeners/early_stopping.h"
#include "muster/core/listeners/evaluation_listener.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/nodes/elastic/directory_store.h"
#include "muster/parallel/nodes/elastic/elastic_nodes.h"
#include "muster/parallel/nodes/node_link.h"
#include "muster/parallel/training/internals.h"
#include "tests/parallel/every_rule.h"
#include "tests/parallel/on_nodes.h"
#include "tests/parallel/resumable.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/small_examples.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

// Trainings over nodes that are threads of this process. `nodes_mpi_test` uses processes.

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

using Bits = std::vector<std::byte>;

/// Whether a merge treats workers differently: only then do four nodes do what two or three do not.
bool joinsWorkersApart(const AnyStrategy& rule) {
  return rule.as<Adasum>() || rule.as<Gossip>() || rule.as<HierarchicalAveraging>();
}

}  // namespace

TEST_CASE("every rule over nodes has the bits of one process that adds up in as many groups") {
  for (const auto [nodes, workers] : {Places{2, 2}, Places{3, 1}, Places{2, 1}, Places{4, 1}})
    for (const auto& rule : everyRule()) {
      const int all = nodes * workers;
      if (!runsOverNodes(rule.options, all) || (nodes == 4 && !joinsWorkersApart(rule.options))) continue;
      CAPTURE(rule.name);
      CAPTURE(nodes);
      CAPTURE(workers);
      const auto batches = ruleBatches(all);
      auto expected = ruleToy();
      ToyIterator data(batches, kRuleWidth);
      auto together = builderOf(expected, all, rule.options).groups(nodes).build();
      together.fit(data, 3);
      together.fit(data, 1);
      VirtualNetwork network(nodes);
      std::vector<Bits> bits(static_cast<std::size_t>(nodes));
      const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
        auto model = ruleToy();
        ToyIterator share(batches, kRuleWidth);
        auto wrapper = builderOf(model, workers, rule.options).nodes(here).build();
        wrapper.fit(share, 3);
        wrapper.fit(share, 1);
        bits[static_cast<std::size_t>(here.node())] = stateBits(model);
      });
      for (int n = 0; n < nodes; ++n) {
        CHECK(problems[static_cast<std::size_t>(n)] == "");
        CHECK(bits[static_cast<std::size_t>(n)] == stateBits(expected));
      }
    }
}

namespace {

/// Rules whose replicas differ after a merge, for four and for three workers.
std::vector<AnyStrategy> mixingRules(int workers) {
  std::vector<AnyStrategy> rules = {
      Gossip{}, Gossip{.frequency = 2, .modelEvery = 3},
      Gossip{.graph = GossipGraph::Ring, .frequency = 2, .updaterState = UpdaterState::Keep},
      Gossip{.graph = GossipGraph::Pairs, .updaterState = UpdaterState::Reset},
      Gossip{.graph = GossipGraph::Complete, .frequency = 3, .codec = Int8Codec{}}};
  const int part = workers % 2 == 0 ? 2 : 1;
  for (const auto state : {UpdaterState::Average, UpdaterState::Keep})
    rules.push_back(HierarchicalAveraging{.levels = {{.period = 1, .group = part}, {.period = 3}},
                                          .updaterState = state});
  return rules;
}

}  // namespace

TEST_CASE("rules that mix replicas over nodes have the bits of one process in groups, at every merge") {
  for (const auto [nodes, workers] : {Places{2, 2}, Places{3, 1}, Places{4, 1}, Places{2, 4}, Places{3, 2}}) {
    const int all = nodes * workers;
    const bool few = (nodes == 2 && workers == 2) || (nodes == 3 && workers == 1);  // also few batches
    auto rules = mixingRules(all);
    if (all == 8)  // groups of a part of a node, of a node, and of two nodes
      rules.push_back(HierarchicalAveraging{
          .levels = {{.period = 1, .group = 2}, {.period = 2, .group = 4}, {.period = 4}}});
    if (all == 6)  // one of the groups has workers of two nodes
      rules.push_back(HierarchicalAveraging{.levels = {{.period = 1, .group = 3}, {.period = 3}}});
    for (const auto& rule : rules) {
      CAPTURE(rule.make()->describe());
      CAPTURE(nodes);
      CAPTURE(workers);
      for (const int batches : {7 * all + 1, all - 1, 1}) {
        if (batches < all && !few) continue;
        CAPTURE(batches);
        const auto examples = randomBatches(5, batches, 4, kRuleWidth, /*ragged=*/true);
        std::vector<Held> expected, held;
        const auto train = [&](ParallelWrapper::Builder builder, Model& model, std::vector<Held>& into) {
          ToyIterator data(examples, kRuleWidth);
          const auto holder = std::make_shared<Holder>(&into);
          auto wrapper = builder.listeners({holder}).build();
          wrapper.fit(data, 2);
          wrapper.fit(data, 1);
          return stateBits(model);
        };
        auto together = ruleToy();
        const auto bits = train(builderOf(together, all, rule).groups(nodes), together, expected);
        VirtualNetwork network(nodes);
        const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
          auto model = ruleToy();
          CHECK(train(builderOf(model, workers, rule).nodes(here), model, held) == bits);
        });
        for (const auto& problem : problems) CHECK(problem == "");
        REQUIRE(held.size() == expected.size());
        for (std::size_t m = 0; m < held.size(); ++m) {
          CAPTURE(m);
          if (rule.make()->traits(1).updaterState ==
              UpdaterState::Keep)  // node 0 alone forms no mean of kept states
            for (Held* one : {&held[m], &expected[m]}) {
              std::erase_if(one->state, [](const NamedValues& v) { return v.name == "velocity"; });
              std::erase_if(one->training, [](const NamedValues& v) {
                return v.name == "fingerprint" || v.name == "mean.velocity";
              });
            }
          CHECK(held[m].difference(expected[m]) == "");
        }
      }
    }
  }
}

TEST_CASE("each batch is trained once, by the worker that one process would give it, with the same stamp") {
  const auto batches = ruleBatches(4);
  auto expected = ruleToy();
  ToyIterator data(batches, kRuleWidth);
  builderOf(expected, 4, Averaging{.frequency = 2}).groups(2).build().fit(data, 2);
  VirtualNetwork network(2);
  std::vector<ToyStep> steps;
  std::mutex mutex;
  onNodes(network, 30s, [&](const Nodes& here) {
    auto own = ruleToy();
    ToyIterator share(batches, kRuleWidth);
    builderOf(own, 2, Averaging{.frequency = 2}).nodes(here).build().fit(share, 2);
    const std::scoped_lock lock(mutex);
    for (const auto& step : own.control().steps()) {
      CHECK(step.stamp.sequence % 2 == here.node());
      steps.push_back(step);
    }
  });
  std::ranges::sort(steps, {}, [](const ToyStep& s) { return std::pair(s.stamp.epoch, s.stamp.sequence); });
  const auto all = expected.control().steps();
  REQUIRE(steps.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(steps[i].stamp.sequence == all[i].stamp.sequence);
    CHECK(steps[i].stamp.iteration == all[i].stamp.iteration);
    CHECK(steps[i].stamp.firstExample == all[i].stamp.firstExample);
    CHECK(steps[i].before == all[i].before);
  }
}

namespace {

/// Gives 7 batches once: `reset` does not rewind it.
class Unrewound final : public DataSetIterator {
 public:
  void reset(std::int64_t) override {}
  bool next(Batch& batch) override {
    if (given_ == 7) return false;
    Batch::ensure(batch.features, "features", {1, 1}).data<float>()[0] = static_cast<float>(++given_);
    return true;
  }

 private:
  int given_ = 0;
};

std::vector<float> sorted(std::vector<float> values) {
  std::ranges::sort(values);
  return values;
}

}  // namespace

TEST_CASE("a stream that reset() does not rewind loses no batch on any node") {
  VirtualNetwork network(2);
  std::mutex mutex;
  std::vector<float> seen;
  const auto watch = [&](ToyModel& model) {
    model.control().onStep = [&](const Batch& batch) {
      const std::scoped_lock lock(mutex);
      seen.push_back(batch.features[0].value.data<float>()[0]);
      CHECK(batch.features[0].value.data<float>()[0] == static_cast<float>(batch.stamp.sequence + 1));
      CHECK(batch.stamp.firstExample == batch.stamp.sequence);
    };
  };
  const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
    ToyModel own;
    watch(own);
    Unrewound stream;
    builderOf(own, 2, Averaging{.frequency = 2}).nodes(here).build().fit(stream);
  });
  CHECK(problems == std::vector<std::string>(2));
  CHECK(sorted(seen) == std::vector<float>{1, 2, 3, 4, 5, 6, 7});

  seen.clear();
  const TemporaryDirectory folder;
  const auto elastic = std::make_shared<ElasticNodes>(
      std::make_unique<DirectoryStore>(folder / "store"), Membership::Options{.silence = 5s, .patience = 60s},
      [](NodeStore&, const Generation&) -> std::shared_ptr<NodeLink> { return nullptr; });
  ToyModel own;
  watch(own);
  Unrewound stream;
  builderOf(own, 2, Averaging{.frequency = 2}).nodes(Nodes(elastic)).build().fit(stream);
  CHECK(sorted(seen) == std::vector<float>{1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("nodes may have fewer batches than workers, and than nodes") {
  for (const int count : {1, 2, 3, 5}) {
    CAPTURE(count);
    const auto batches = randomBatches(3, count, 2, kRuleWidth);
    auto expected = ruleToy();
    ToyIterator data(batches, kRuleWidth);
    builderOf(expected, 6, Averaging{.frequency = 2}).groups(3).build().fit(data, 3);
    VirtualNetwork network(3);
    const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
      auto model = ruleToy();
      ToyIterator share(batches, kRuleWidth);
      builderOf(model, 2, Averaging{.frequency = 2}).nodes(here).build().fit(share, 3);
      CHECK(stateBits(model) == stateBits(expected));
      CHECK(model.iteration() == expected.iteration());
    });
    for (const auto& problem : problems) CHECK(problem.empty());
  }
}

TEST_CASE("merged listeners are called on node 0 only, and a stop on one node stops all") {
  VirtualNetwork network(2);
  std::array<int, 2> merges{};
  std::array<std::int64_t, 2> iterations{};
  std::array<Bits, 2> bits;
  const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
    const auto node = static_cast<std::size_t>(here.node());
    struct Stopping final : Listener {
      explicit Stopping(int& merges) : merges_(merges) {}
      void onMerge(const MergeEvent& event) override {
        CHECK(event.examples > 0);
        if (++merges_ == 3) event.trainer.stopFit();
      }
      int& merges_;
    };
    auto model = ruleToy();
    ToyIterator share(ruleBatches(4), kRuleWidth);
    builderOf(model, 2, Averaging{.frequency = 1})
        .nodes(here)
        .listeners({std::make_shared<Stopping>(merges[node])})
        .build()
        .fit(share, 50);
    iterations[node] = model.iteration();
    bits[node] = stateBits(model);
  });
  for (const auto& problem : problems) CHECK(problem.empty());
  CHECK(merges[0] >= 3);
  CHECK(merges[0] <= 5);
  CHECK(merges[1] == 0);
  CHECK(iterations[0] == iterations[1]);
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
  for (const AnyStrategy& rule :
       {AnyStrategy(Averaging{.frequency = 2}),
        AnyStrategy(OuterAveraging{.frequency = 2, .rate = 0.7, .momentum = 0.5})}) {
    CAPTURE(rule.make()->describe());
    auto expected = ruleToy();
    ToyIterator data(ruleBatches(4), kRuleWidth);
    auto together = builderOf(expected, 4, rule).groups(2).listeners({stopping()}).build();
    together.fit(data, 20);
    CHECK(expected.epoch() == 2);
    const Bits best = stateBits(expected);
    together.fit(data, 1);
    VirtualNetwork network(2);
    std::array<Bits, 2> first, second;
    const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
      const auto node = static_cast<std::size_t>(here.node());
      auto model = ruleToy();
      ToyIterator share(ruleBatches(4), kRuleWidth);
      const auto listener = stopping();
      auto wrapper = builderOf(model, 2, rule).nodes(here).listeners({listener}).build();
      wrapper.fit(share, 20);
      first[node] = stateBits(model);
      CHECK(model.epoch() == 2);
      CHECK(contains(listener->reason(), "has not improved for 2 epochs; the best was 1 after epoch 2"));
      wrapper.fit(share, 1);
      second[node] = stateBits(model);
    });
    for (const auto& problem : problems) CHECK(problem == "");
    for (const Bits& bits : first) CHECK(bits == best);
    for (const Bits& bits : second) CHECK(bits == stateBits(expected));
  }
}

TEST_CASE("a node that fails ends the training of all, and all models hold the same committed merge") {
  VirtualNetwork network(3);
  std::array<Bits, 3> bits;
  const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
    auto model = ruleToy();
    if (here.node() == 1)
      model.control().onStep = [](const Batch& batch) {
        if (batch.stamp.iteration == 5) throw std::runtime_error("the disk is full");
      };
    ToyIterator share(ruleBatches(3), kRuleWidth);
    auto wrapper = builderOf(model, 1, Averaging{.frequency = 2}).nodes(here).build();
    const auto problem = thrown<TrainingError>([&] { wrapper.fit(share, 3); });
    bits[static_cast<std::size_t>(here.node())] = stateBits(model);
    CHECK(model.iteration() == 4);
    CHECK_THROWS_AS(wrapper.fit(share, 1), NodeFailure);
    throw Error(problem);
  });
  CHECK(contains(problems[1], "worker 1 on cpu failed in batch"));
  CHECK(contains(problems[1], "the disk is full"));
  for (const int n : {0, 2}) {
    CAPTURE(problems[static_cast<std::size_t>(n)]);
    CHECK(contains(problems[static_cast<std::size_t>(n)], "node 1 (virtual1) "));
    CHECK(bits[static_cast<std::size_t>(n)] == bits[1]);
  }
}

TEST_CASE("if a node fails in a long round, the others end at their next batch, not at the round's end") {
  VirtualNetwork network(2);
  std::array<std::size_t, 2> steps{};
  std::promise<void> inStep;
  auto begun = inStep.get_future();
  const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
    auto model = ruleToy();
    model.control().onStep = [&](const Batch& batch) {
      if (batch.stamp.iteration != 3) return;
      if (here.node() == 1) {
        begun.wait_for(30s);
        throw std::runtime_error("the disk is full");
      }
      inStep.set_value();
      for (int i = 0; i < 30'000 && !here.link()->failed(); ++i) std::this_thread::sleep_for(1ms);
    };
    ToyIterator share(randomBatches(9, 2 * 50, 3, kRuleWidth), kRuleWidth);
    auto wrapper = builderOf(model, 1, Averaging{.frequency = 40}).nodes(here).build();
    const auto problem = thrown<TrainingError>([&] { wrapper.fit(share, 1); });
    steps[static_cast<std::size_t>(here.node())] = model.control().steps().size();
    CHECK(model.iteration() == 0);
    throw Error(problem);
  });
  CHECK(contains(problems[0], "node 1 (virtual1) "));
  CHECK(steps[0] == 4);
}

namespace {

/// Records every merge of an undisturbed training: parameters by iteration.
struct Merges final : Listener {
  void onFitStart(const FitEvent& event) override { keep(event.trainer); }
  void onMerge(const MergeEvent& event) override { keep(event.trainer); }
  void keep(Trainer& trainer) {
    auto& model = dynamic_cast<ToyModel&>(trainer.model());
    all.emplace_back(model.iteration(), model.parameters());
  }
  std::vector<std::pair<std::int64_t, std::vector<float>>> all;
};

/// Parameters, and the iteration after which they were merged.
using Merged = std::pair<std::int64_t, std::vector<float>>;

/// What a checkpoint of each merge needs of the other nodes; keeps the last merge of which it got it.
struct Checkpoints final : Listener {
  void onMerge(const MergeEvent& event) override {
    static_cast<void>(event.trainer.trainingState());
    auto& model = dynamic_cast<ToyModel&>(event.trainer.model());
    last = {model.iteration(), model.parameters()};
  }
  std::optional<Merged> last;
};

/// How a training loses a node: it falls silent after so many bytes, or is cut off from the node before it.
struct Loss {
  int node = 1;
  std::int64_t after = 0;  // bytes; -1: the cut
};

/// What is left of a training.
struct Left {
  std::vector<std::string> problems;  // [node]
  std::vector<Merged> models;         // [node]
  std::optional<Merged> checkpoint;
};

Left leftOf(const AnyStrategy& rule, const Places& places, const Loss& loss) {
  VirtualNetwork network(places.nodes);
  if (loss.after >= 0) network.silence(loss.node, loss.after);
  const int all = places.nodes * places.workers;
  Left left;
  left.models.resize(static_cast<std::size_t>(places.nodes));
  const auto checkpoints = std::make_shared<Checkpoints>();
  left.problems = onNodes(network, 300ms, [&](const Nodes& here) {
    auto model = ruleToy();
    if (loss.after < 0 && here.node() == loss.node)
      model.control().onStep = [&](const Batch& batch) {
        if (batch.stamp.iteration == 9) network.cut(loss.node - 1, loss.node);
      };
    ToyIterator share(ruleBatches(all), kRuleWidth);
    Listeners listeners;
    if (here.node() == 0) listeners.push_back(checkpoints);
    auto wrapper = builderOf(model, places.workers, rule).nodes(here).listeners(listeners).build();
    const auto keep = [&] {
      left.models[static_cast<std::size_t>(here.node())] = {model.iteration(), model.parameters()};
    };
    try {
      wrapper.fit(share, 3);
    } catch (...) {
      keep();
      throw;
    }
    keep();
  });
  left.checkpoint = checkpoints->last;
  return left;
}

/// Checks the training for each of these losses. They run at the same time, because they mostly wait.
void checkLosses(const AnyStrategy& rule, const Places& places, const std::vector<Loss>& losses) {
  const auto merges = std::make_shared<Merges>();
  auto expected = ruleToy();
  const int all = places.nodes * places.workers;
  ToyIterator data(ruleBatches(all), kRuleWidth);
  builderOf(expected, all, rule).groups(places.nodes).listeners({merges}).build().fit(data, 3);
  const auto place = [&](const Merged& one) {
    const auto found = std::ranges::find(merges->all, one);
    CHECK(found != merges->all.end());
    return found - merges->all.begin();
  };
  std::vector<std::future<Left>> trainings;
  for (const Loss& loss : losses)
    trainings.push_back(std::async(std::launch::async, leftOf, rule, places, loss));
  for (std::size_t i = 0; i < losses.size(); ++i) {
    CAPTURE(losses[i].node);
    CAPTURE(losses[i].after);
    const auto left = trainings[i].get();
    CAPTURE(left.problems[0]);
    if (losses[i].node == 1 && losses[i].after >= 0) CHECK(contains(left.problems[0], "node 1 (virtual1)"));
    for (const auto& problem : left.problems) CHECK_FALSE(problem.empty());
    // Each is that of a committed merge, and nodes may be one merge apart.
    std::vector<std::ptrdiff_t> places_;
    for (const auto& model : left.models) places_.push_back(place(model));
    const auto [least, most] = std::ranges::minmax(places_);
    CHECK(most - least <= 1);
    // A checkpoint of that merge may fail, because it needs the lost node.
    const auto ofCheckpoint = left.checkpoint ? place(*left.checkpoint) : 0;
    CHECK(places_[0] >= ofCheckpoint);
    CHECK(places_[0] <= ofCheckpoint + 1);
  }
}

}  // namespace

TEST_CASE("a node that is lost at any moment is named, and every model holds a committed merge") {
  for (const auto& rule : everyRule()) {
    if (!runsOverNodes(rule.options, 2)) continue;
    CAPTURE(rule.name);
    checkLosses(rule.options, {2, 1},
                {{1, 400}, {1, 1900}, {1, 2600}, {1, 3300}, {0, 1500}, {0, 2900}, {1, -1}});
  }
}

TEST_CASE("a silent node is named under every rule that mixes replicas, too") {
  for (const auto& places : {Places{3, 1}, Places{2, 2}})
    for (const auto& rule : mixingRules(places.nodes * places.workers)) {
      CAPTURE(rule.make()->describe());
      CAPTURE(places.nodes);
      checkLosses(rule, places, {{1, 1500}, {1, 4000}, {0, 2000}, {1, -1}});
    }
}

/// Rules whose only merge within the first 6 iterations is launched after 3 and lands after 5.
std::vector<AnyStrategy> flyingRules() {
  return {OverlappedAveraging{.frequency = 5, .delay = 2, .updaterState = UpdaterState::Keep},
          OverlappedAveraging{.frequency = 5,
                              .delay = 2,
                              .landing = OverlappedAveraging::Pull{.strength = 0.6},
                              .momentum = 0.7,
                              .updaterState = UpdaterState::Keep},
          StreamingOuter{.frequency = 5, .fragments = 1, .delay = 2, .updaterState = UpdaterState::Keep},
          StreamingOuter{.frequency = 5,
                         .fragments = 1,
                         .delay = 2,
                         .updaterState = UpdaterState::Keep,
                         .codec = Int8Codec{}}};
}

TEST_CASE("workers train while a launched merge is sent, and the bits are the same") {
  const auto batches = randomBatches(9, 4 * 6, 3, kRuleWidth);
  for (const auto& rule : flyingRules()) {
    CAPTURE(rule.make()->describe());
    auto expected = ruleToy();
    ToyIterator data(batches, kRuleWidth);
    builderOf(expected, 4, rule).groups(2).build().fit(data, 1);
    VirtualNetwork network(2);
    network.hold();
    std::promise<void> released;
    // If the launch waited for the held messages, this would release them, and the test would fail.
    std::jthread patience([&, end = released.get_future()] {
      const bool inTime = end.wait_for(60s) == std::future_status::ready;
      CHECK(inTime);
      if (!inTime) network.release();
    });
    std::once_flag once;
    std::array<Bits, 2> bits;
    const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
      auto model = ruleToy();
      model.control().onStep = [&](const Batch& batch) {
        if (batch.stamp.iteration != 4) return;  // the last step before the landing
        std::call_once(once, [&] {
          network.release();
          released.set_value();
        });
      };
      ToyIterator share(batches, kRuleWidth);
      builderOf(model, 2, rule).nodes(here).build().fit(share, 1);
      bits[static_cast<std::size_t>(here.node())] = stateBits(model);
    });
    for (const auto& problem : problems) CHECK(problem == "");
    for (const auto& one : bits) CHECK(one == stateBits(expected));
  }
}

TEST_CASE(
    "if the network fails while a merge is in flight, the training ends with one error that names the node") {
  for (const auto& rule : flyingRules()) {
    CAPTURE(rule.make()->describe());
    const auto batches = randomBatches(9, 2 * 6, 3, kRuleWidth);
    VirtualNetwork network(2);
    network.hold();
    auto begun = ruleToy();
    const auto problems = onNodes(network, 300ms, [&](const Nodes& here) {
      auto model = ruleToy();
      model.control().onStep = [&](const Batch& batch) {
        if (here.node() == 1 && batch.stamp.iteration == 3) network.silence(1);
      };
      ToyIterator share(batches, kRuleWidth);
      auto wrapper = builderOf(model, 1, rule).nodes(here).build();
      CHECK_THROWS_AS(wrapper.fit(share, 1), TrainingError);
      CHECK(model.parameters() == begun.parameters());  // nothing has landed
      wrapper.fit(share, 1);
    });
    for (const auto& problem : problems) CHECK(contains(problem, "(virtual"));
    CHECK(contains(problems[0], "node 1 (virtual1)"));
  }
}

TEST_CASE("a stop lands all merges in flight, and all nodes have the same model") {
  for (const auto& rule : flyingRules()) {
    CAPTURE(rule.make()->describe());
    const auto batches = randomBatches(9, 4 * 20, 3, kRuleWidth);
    VirtualNetwork network(2);
    std::array<Bits, 2> bits;
    std::array<std::int64_t, 2> iterations{};
    const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
      auto model = ruleToy();
      ToyIterator share(batches, kRuleWidth);
      auto wrapper = builderOf(model, 2, rule).nodes(here).build();
      model.control().onStep = [&](const Batch& batch) {
        if (here.node() == 1 && batch.stamp.iteration == 3) wrapper.stopFit();
      };
      wrapper.fit(share, 1);
      bits[static_cast<std::size_t>(here.node())] = stateBits(model);
      iterations[static_cast<std::size_t>(here.node())] = model.iteration();
      wrapper.fit(share, 1);  // nothing left behind disturbs another training
    });
    for (const auto& problem : problems) CHECK(problem == "");
    CHECK(bits[0] == bits[1]);
    CHECK(iterations[0] == iterations[1]);
    CHECK(iterations[0] >= 4);
    CHECK(iterations[0] < 20);
  }
}

TEST_CASE("a checkpoint of node 0, at any merge, resumes all nodes to the same bits") {
  for (const AnyStrategy& rule :
       {AnyStrategy(Averaging{.frequency = 3}), AnyStrategy(SynchronousGradients{}),
        AnyStrategy(OuterAveraging{.frequency = 2, .rate = 0.7, .momentum = 0.5}),
        AnyStrategy(Adasum{.frequency = 3}),
        AnyStrategy(OuterAveraging{.frequency = 2, .rate = 0.7, .momentum = 0.5, .codec = E3M0Codec{}}),
        AnyStrategy(Averaging{.frequency = 3, .codec = Int8Codec{}})}) {
    CAPTURE(rule.make()->describe());
    const auto batches = ruleBatches(4);
    std::vector<Held> atMerges;
    Bits whole;
    VirtualNetwork network(2);
    onNodes(network, 30s, [&](const Nodes& here) {
      auto model = ruleToy();
      ToyIterator share(batches, kRuleWidth);
      builderOf(model, 2, rule)
          .nodes(here)
          .listeners({std::make_shared<Holder>(&atMerges)})
          .build()
          .fit(share, 2);
      if (here.node() == 0) whole = stateBits(model);
    });
    REQUIRE(atMerges.size() >= 4);
    for (const std::size_t m : {std::size_t{0}, atMerges.size() / 2, atMerges.size() - 2}) {
      CAPTURE(m);
      REQUIRE_FALSE(atMerges[m].training.empty());
      VirtualNetwork again(2);
      const auto problems = onNodes(again, 30s, [&](const Nodes& here) {
        auto model = ruleToy();
        atMerges[m].giveTo(model);
        ToyIterator share(batches, kRuleWidth);
        builderOf(model, 2, rule).nodes(here).build().fit(share, 2 - model.epoch());
        CHECK(stateBits(model) == whole);
      });
      for (const auto& problem : problems) CHECK(problem == "");
    }
    // With another number of nodes, training continues, though not to the same bits.
    auto model = ruleToy();
    atMerges[0].giveTo(model);
    ToyIterator data(batches, kRuleWidth);
    builderOf(model, NamedRule{"", rule}.workers(3), rule).build().fit(data, 1);
    CHECK(model.epoch() == 1);
  }
}

TEST_CASE(
    "a checkpoint of a rule that mixes replicas resumes all nodes to the same bits, also after a stop") {
  for (const auto [nodes, workers] : {Places{2, 2}, Places{3, 1}})
    for (const AnyStrategy& rule :
         {AnyStrategy(Gossip{.frequency = 2, .modelEvery = 3}),
          AnyStrategy(Gossip{.graph = GossipGraph::Ring, .frequency = 2, .updaterState = UpdaterState::Keep}),
          AnyStrategy(Gossip{.graph = GossipGraph::Pairs, .updaterState = UpdaterState::Reset}),
          AnyStrategy(
              HierarchicalAveraging{.levels = {{.period = 1, .group = nodes == 2 ? 2 : 1}, {.period = 3}},
  .updaterState = UpdaterState::Keep})}) {
      CAPTURE(rule.make()->describe());
      CAPTURE(nodes);
      const auto batches = ruleBatches(nodes * workers);
      std::vector<Held> held;
      Bits whole;
      VirtualNetwork network(nodes);
      const auto train = [&](ToyModel& model, const Nodes& here, const Listeners& listeners,
                             std::int64_t stop = 0) {
        ToyIterator share(batches, kRuleWidth);
        auto wrapper = builderOf(model, workers, rule).nodes(here).listeners(listeners).build();
        model.control().onStep = [&](const Batch& batch) {
          if (stop > 0 && here.node() == 1 && batch.stamp.iteration == stop) wrapper.stopFit();
        };
        wrapper.fit(share, 2 - model.epoch());
      };
      const auto wellOn = [&](const NodeProgram& program) {
        VirtualNetwork again(nodes);
        for (const auto& problem : onNodes(again, 30s, program)) CHECK(problem == "");
      };
      wellOn([&](const Nodes& here) {
        auto model = ruleToy();
        train(model, here, {std::make_shared<Holder>(&held)});
        if (here.node() == 0) whole = stateBits(model);
      });
      REQUIRE(held.size() >= 4);
      for (const std::size_t m : {std::size_t{1}, held.size() / 2}) {
        CAPTURE(m);
        REQUIRE_FALSE(held[m].training.empty());
        wellOn([&](const Nodes& here) {
          auto model = ruleToy();
          held[m].giveTo(model);
          train(model, here, {});
          CHECK(stateBits(model) == whole);
        });
      }
      // A checkpoint that is made when a stopped fit ends.
      std::vector<Held> atEnd;
      wellOn([&](const Nodes& here) {
        auto model = ruleToy();
        const auto holder = std::make_shared<Holder>();
        train(model, here, {holder}, 3);
        if (here.node() == 0) atEnd.push_back(holder->atEnd());
      });
      REQUIRE(atEnd.size() == 1);
      REQUIRE_FALSE(atEnd[0].training.empty());
      auto together = ruleToy();
      atEnd[0].giveTo(together);
      ToyIterator all(batches, kRuleWidth);
      builderOf(together, nodes * workers, rule).groups(nodes).build().fit(all, 2 - together.epoch());
      CHECK(together.epoch() == 2);
      wellOn([&](const Nodes& here) {
        auto model = ruleToy();
        atEnd[0].giveTo(model);
        train(model, here, {});
        CHECK(model.epoch() == 2);
        CHECK(stateBits(model) == stateBits(together));
      });
      // With another number of nodes, training continues, though not to the same bits.
      auto model = ruleToy();
      held[0].giveTo(model);
      ToyIterator data(batches, kRuleWidth);
      builderOf(model, 2, rule).build().fit(data, 1);
      CHECK(model.epoch() == 1);
    }
}

TEST_CASE("replicas are collected while the other nodes wait in an evaluation") {
  const auto network = [] {
    auto model = std::make_unique<MultiLayerNetwork>(
        MultiLayerConfiguration{.inputShape = {6}, .layers = {Dense{.units = 5}, Output{.classes = 4}}});
    model->init();
    return model;
  };
  const Gossip rule{.graph = GossipGraph::Ring, .updaterState = UpdaterState::Keep};
  std::vector<Held> held;
  std::vector<Bits> whole(3);
  VirtualNetwork first(3), again(3);
  const auto problems = onNodes(first, 30s, [&](const Nodes& here) {
    auto model = network();
    SmallExamples data(40), validation(16);
    const EvaluationOptions often{.everyIterations = 1, .sink = [](std::string_view) {}};
    builderOf(*model, 1, rule)
        .nodes(here)
        .listeners({std::make_shared<Holder>(&held), std::make_shared<EvaluationListener>(validation, often)})
        .build()
        .fit(data, 2);
    whole[static_cast<std::size_t>(here.node())] = stateBits(*model);
  });
  for (const auto& problem : problems) CHECK(problem == "");
  REQUIRE(held.size() >= 3);
  const auto resumed = onNodes(again, 30s, [&](const Nodes& here) {
    auto model = network();
    held[1].giveTo(*model);
    SmallExamples data(40);
    builderOf(*model, 1, rule).nodes(here).build().fit(data, 2 - model->epoch());
    CHECK(stateBits(*model) == whole[0]);
  });
  for (const auto& problem : resumed) CHECK(problem == "");
}

namespace {

/// What a node trains with, where one of three differs.
struct OwnSetting {
  TrainingOptions training = halfNesterovs();
  std::vector<float> parameters = std::vector<float>(kRuleWidth);
  std::int64_t iteration = 0;
  ToyIterator data{ruleBatches(3), kRuleWidth}, validation{ruleBatches(3), kRuleWidth};
  Averaging rule = {.frequency = 2};
  int workers = 1;
  EvaluationOptions evaluation = {};
  EarlyStoppingOptions stopping = {.monitor = Monitor::TrainingScore, .mode = MonitorMode::Min};
  Listeners listeners = {};  ///< beside those with the options above
  detail::Internals internals = {};
};

/// Trains on three nodes. @param change  is for the last one.  @return in what node 0 says that it differs.
std::string differ(const std::function<void(OwnSetting&)>& change) {
  VirtualNetwork network(3);
  const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
    OwnSetting own;
    if (here.node() == 2) change(own);
    ToyModel model({.size = kRuleWidth, .training = own.training, .statistics = true});
    model.setParameters(own.parameters);
    model.setCounters(own.iteration, 0);
    Listeners listeners{std::make_shared<EvaluationListener>(own.validation, own.evaluation),
                        std::make_shared<EarlyStopping>(own.stopping)};
    listeners.insert(listeners.end(), own.listeners.begin(), own.listeners.end());
    builderOf(model, own.workers, own.rule)
        .nodes(here)
        .listeners(listeners)
        .internals(own.internals)
        .build()
        .fit(own.data, 1);
  });
  const std::string begin = "nodes: node 0 (virtual0) and node 2 (virtual2) differ in ";
  for (const auto& problem : problems) {
    CAPTURE(problem);
    CHECK(problem.starts_with(begin));
  }
  return problems[0].substr(std::min(begin.size(), problems[0].size()));
}

}  // namespace

TEST_CASE(
    "nodes with different models or wrappers are refused at the start, on all nodes, naming two of them") {
  const auto frequency = differ([](auto& own) { own.rule.frequency = 3; });
  CHECK(
      frequency.starts_with("the strategy, which must be the same on all nodes; on this node: \"averaging "
                            "every 2 iterations (every=2,"));
  const auto state = differ([](auto& own) { own.rule.updaterState = UpdaterState::Keep; });
  CHECK(state.starts_with(
      "the strategy, which must be the same on all nodes; on this node: \"averaging every 2 iterations ("));
  CHECK(contains(state, "updaterState=average"));
  CHECK(differ([](auto& own) { own.workers = 2; }) ==
        "workers on each node, which must be the same on all nodes; on this node: \"1\"");
  CHECK(differ([](auto& own) { own.parameters[3] = 1; }) ==
        "the parameters or the state of the model, which must be the same on all nodes; load the same file "
        "on all nodes, or initialise the model with the same seed");
  CHECK(differ([](auto& own) { own.iteration = 7; }) ==
        "where the training begins, which must be the same on all nodes: node 0 (virtual0) begins at batch 1 "
        "of epoch 1 (iteration 0) with a new model, and node 2 (virtual2) begins at batch 1 of epoch 1 "
        "(iteration 7) with a model that it has trained; load the same checkpoint on all nodes, or begin a "
        "new training on all");
  CHECK(differ([](auto& own) { own.data.knownExamples = 5; }) ==
        "the examples of the data set, which must be the same on all nodes; on this node: \"not known\"");
  CHECK(differ([](auto& own) { own.data = ToyIterator(randomBatches(6, 22, 4, kRuleWidth), kRuleWidth); }) ==
        "the first batch, which must be the same on all nodes");
  CHECK(differ([](auto& own) {
          own.internals.version = "0.0.1";
        }).starts_with("the version of muster, which must be the same on all nodes; on this node: \""));
}

TEST_CASE("nodes with different options of the training are refused") {
  const std::vector<std::function<void(TrainingOptions&)>> changes = {
      [](auto& o) { o.updater = Nesterovs{.learningRate = 0.25, .momentum = 0.5}; },
      [](auto& o) { o.updater = Nesterovs{.learningRate = 0.5, .momentum = 0.25}; },
      [](auto& o) { o.updater = o.updater.withLearningRate(StepSchedule{.initial = 0.5}); },
      [](auto& o) { o.l1 = 0.5; },
      [](auto& o) { o.l2 = 0.5; },
      [](auto& o) { o.weightDecay = 0.5; },
      [](auto& o) { o.clipNorm = 0.5; },
      [](auto& o) { o.clipValue = 0.5; },
      [](auto& o) { o.accumulate = 2; }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    const auto problem = differ([&](OwnSetting& own) { changes[i](own.training); });
    CHECK(
        problem.starts_with("the training options of the model, which must be the same on all nodes; on this "
                            "node: \"{\"updater\":"));
  }
}

TEST_CASE("nodes with different listeners, or different settings of one, are refused") {
  ToyIterator validation(ruleBatches(3), kRuleWidth);
  const std::vector<std::function<void(OwnSetting&)>> changes = {
      [](auto& own) { own.evaluation.everyEpochs = 2; },
      [](auto& own) { own.evaluation.everyIterations = 4; },
      [](auto& own) { own.validation.knownExamples = 5; },
      [](auto& own) { own.stopping.patience = 2; },
      [](auto& own) { own.stopping.restoreBest = true; },
      [](auto& own) { own.stopping.everyEpochs = 2; },
      [&](auto& own) { own.listeners = {std::make_shared<EvaluationListener>(validation)}; }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    const auto problem = differ(changes[i]);
    CHECK(problem.starts_with(
        "the listeners that are called on all nodes, which must be the same on all nodes; on this "
        "node: \"EvaluationListener"));
  }
}

TEST_CASE("nodes whose layers have different settings, or networks different seeds, are refused") {
  const auto train = [](const MultiLayerConfiguration& one, const MultiLayerConfiguration& other) {
    VirtualNetwork network(2);
    return onNodes(network, 30s, [&](const Nodes& here) {
      MultiLayerNetwork model(here.node() == 0 ? one : other);
      model.init();
      SmallExamples data(8);
      builderOf(model, 1, Averaging{}).nodes(here).build().fit(data, 1);
    });
  };
  const auto of = [](double rate, std::uint64_t seed) {
    return MultiLayerConfiguration{
        .seed = seed,
        .inputShape = {6},
        .layers = {Dense{.units = 5}, Dropout{.rate = rate}, Output{.classes = 4}}};
  };
  for (const auto& other : {of(0.25, 1), of(0.5, 2)})
    for (const auto& problem : train(of(0.5, 1), other)) {
      CAPTURE(problem);
      CHECK(problem ==
            "nodes: node 0 (virtual0) and node 1 (virtual1) differ in the configuration of the model, which "
            "must be the same on all nodes");
    }
  for (const auto& problem : train(of(0.5, 1), of(0.5, 1))) CHECK(problem == "");
}

TEST_CASE("options that are not available over nodes are refused by name") {
  VirtualNetwork network(2);
  const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
    auto model = ruleToy();
    const auto refused = [&](const AnyStrategy& strategy) {
      return thrown<InvalidArgument>([&] { builderOf(model, 2, strategy).nodes(here).build(); });
    };
    CHECK(contains(refused(Gossip{.graph = GossipGraph::Ring, .codec = Int8Codec{}}),
                   "codec: replicas on a ring cannot be sent encoded"));
    CHECK(contains(refused(HierarchicalAveraging{.levels = {{.period = 1, .group = 2}, {.period = 2}},
                                                 .codec = Int8Codec{}}),
                   "codec: replicas of groups cannot be sent encoded"));
    CHECK(contains(refused(HierarchicalAveraging{.levels = {{.period = 1, .group = 3}, {.period = 2}}}),
                   "groups of 3 do not divide the 4 workers"));
    CHECK(contains(refused(Adasum{.codec = Int8Codec{}}), "still send the sums of pairs unencoded"));
    CHECK(contains(refused(AsynchronousOuter{}), "arrive, which is not supported over nodes"));
    CHECK(contains(
        thrown<InvalidArgument>([&] { builderOf(model, 4, Averaging{}).nodes(here).groups(2).build(); }),
        "each node is a group"));
  });
  for (const auto& problem : problems) CHECK(problem == "");
  auto model = ruleToy();
  CHECK(contains(thrown<InvalidArgument>([&] { builderOf(model, 3, Averaging{}).groups(2).build(); }),
                 "groups: 2 do not divide 3 workers"));
}

TEST_CASE("if nodes join and leave, groups that span nodes are refused") {
  const TemporaryDirectory folder;
  const auto elastic = std::make_shared<ElasticNodes>(
      std::make_unique<DirectoryStore>(folder / "store"), Membership::Options{.silence = 5s, .patience = 60s},
      [](NodeStore&, const Generation&) -> std::shared_ptr<NodeLink> { return nullptr; });
  auto model = ruleToy();
  const auto build = [&](int workers, const HierarchicalAveraging& rule) {
    builderOf(model, workers, rule).nodes(Nodes(elastic)).build();
  };
  build(4, {.levels = {{.period = 1, .group = 2}, {.period = 2, .group = 4}, {.period = 3}}});
  CHECK(contains(thrown<InvalidArgument>([&] {
                   build(2, {.levels = {{.period = 1, .group = 4}, {.period = 2}}});
                 }),
                 "cannot train over elastic nodes, because their number changes: "));
  CHECK(contains(thrown<InvalidArgument>([&] {
                   build(4, {.levels = {{.period = 1, .group = 2}, {.period = 2, .group = 4}}});
                 }),
                 "the last level must merge all 8 workers, got groups of 4"));
}

TEST_CASE("a program that a launcher started several times without connecting its nodes is refused") {
  ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  auto model = ruleToy();
  const auto problem = thrown<InvalidArgument>([&] { builderOf(model, 1, Averaging{}).build(); });
  CHECK(contains(problem, "a launcher has started 2 processes"));
  builderOf(model, 1, Averaging{}).nodes(Nodes()).build();
  ::unsetenv("OMPI_COMM_WORLD_SIZE");
}
