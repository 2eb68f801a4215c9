// Trainings over nodes, threads of this process, that lose a node or the network, or are stopped in between.

#include <future>

#include "muster/parallel/nodes/node_link.h"
#include "tests/parallel/mixing_rules.h"
#include "tests/parallel/on_nodes.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/on_merge.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

TEST_CASE("a node that fails ends the training of all, and all models hold the same committed merge") {
  struct Case {
    AnyStrategy rule;
    std::int64_t iteration;  ///< of the last merge before the failure in iteration 5
    int nodes = 2, workers = 2;
  };
  for (const auto& [rule, iteration, nodes, workers] :
       {Case{Averaging{.frequency = 2}, 4, 3, 1}, Case{Averaging{.frequency = 2}, 4},
        Case{Averaging{.frequency = 2, .updaterState = UpdaterState::Keep}, 4},
        Case{SynchronousGradients{}, 5}, Case{SharedGradients{.resynchronizationFrequency = 4}, 5},
        Case{Adasum{.frequency = 2}, 4}}) {
    CAPTURE(rule.make()->describe());
    std::set<std::vector<std::byte>> bits;  // of all nodes and devices
    std::mutex mutex;
    for (const int devices : {0, 2}) {
      CAPTURE(devices);
      VirtualNetwork network(nodes);
      const auto problems = onNodes(
          network, 30s, [&, rule = rule, workers = workers, iteration = iteration](const Nodes& here) {
            auto model = ruleToy();
            if (here.node() == 1)
              model.control().onStep = [](const Batch& batch) {
                if (batch.stamp.iteration == 5) throw std::runtime_error("the disk is full");
              };
            ToyIterator share(ruleBatches(4), kRuleWidth);
            auto wrapper =
                builderOf(model, workers, rule).internals({.pretendedDevices = devices}).nodes(here).build();
            const auto problem = thrown<TrainingError>([&] { wrapper.fit(share, 3); });
            CHECK(model.iteration() == iteration);
            CHECK_THROWS_AS(wrapper.fit(share, 1), NodeFailure);
            const std::scoped_lock lock(mutex);
            bits.insert(stateBits(model));
            throw Error(problem);
          });
      CHECK_CONTAINS(problems[1], " on cpu failed in batch");
      CHECK_CONTAINS(problems[1], "the disk is full");
      for (std::size_t n = 0; n < problems.size(); n += 2) CHECK_CONTAINS(problems[n], "node 1 (virtual1) ");
    }
    CHECK(bits.size() == 1);
  }
}

TEST_CASE("if a node fails in a long round, the others end at their next batch, not at the round's end") {
  VirtualNetwork network(2);
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
    if (here.node() == 0) CHECK(model.control().steps().size() == 4);
    CHECK(model.iteration() == 0);
    throw Error(problem);
  });
  CHECK_CONTAINS(problems[0], "node 1 (virtual1) ");
}

namespace {

/// Parameters, and the iteration after which they were merged.
using Merged = std::pair<std::int64_t, std::vector<float>>;

/// How a training loses a node: it falls silent after so many bytes, or is cut off from the node before it.
struct LostNode {
  int node = 1;
  std::int64_t after = 0;  // bytes; -1: the cut
};

/// What is left of a training.
struct Left {
  std::vector<std::string> problems;  // [node]
  std::vector<Merged> models;         // [node]
  std::optional<Merged> checkpoint;
};

Left leftOf(const AnyStrategy& rule, const Places& places, const LostNode& loss) {
  VirtualNetwork network(places.nodes);
  if (loss.after >= 0) network.silence(loss.node, loss.after);
  Left left;
  left.models.resize(static_cast<std::size_t>(places.nodes));
  // The last merge of which a checkpoint got what it needs of the other nodes.
  const auto checkpoints = onMerge([&](const MergeEvent& event) {
    static_cast<void>(event.trainer.trainingState());
    auto& model = dynamic_cast<ToyModel&>(event.trainer.model());
    left.checkpoint = {model.iteration(), model.parameters()};
  });
  left.problems = onNodes(network, 300ms, [&](const Nodes& here) {
    auto model = ruleToy();
    if (loss.after < 0 && here.node() == loss.node)
      model.control().onStep = [&](const Batch& batch) {
        if (batch.stamp.iteration == 9) network.cut(loss.node - 1, loss.node);
      };
    ToyIterator share(ruleBatches(places.all()), kRuleWidth);
    Listeners listeners;
    if (here.node() == 0) listeners.push_back(checkpoints);
    auto wrapper = builderOf(model, places.workers, rule).nodes(here).listeners(listeners).build();
    const auto problem = thrown<std::exception>([&] { wrapper.fit(share, 3); });
    left.models[static_cast<std::size_t>(here.node())] = {model.iteration(), model.parameters()};
    if (!problem.empty()) throw Error(problem);
  });
  return left;
}

/// Checks the training for each of these losses. They run at the same time, because they mostly wait.
void checkLosses(const AnyStrategy& rule, const Places& places, const std::vector<LostNode>& losses) {
  CAPTURE(rule.make()->describe());
  CAPTURE(places);
  auto expected = ruleToy();
  std::vector<Merged> merges = {{0, expected.parameters()}};  // of an undisturbed training
  const auto recorder = onMerge([&](const MergeEvent& event) {
    auto& model = dynamic_cast<ToyModel&>(event.trainer.model());
    merges.emplace_back(model.iteration(), model.parameters());
  });
  ToyIterator data(ruleBatches(places.all()), kRuleWidth);
  builderOf(expected, places.all(), rule).groups(places.nodes).listeners({recorder}).build().fit(data, 3);
  const auto place = [&](const Merged& one) {
    const auto found = std::ranges::find(merges, one);
    CHECK(found != merges.end());
    return found - merges.begin();
  };
  std::vector<std::future<Left>> trainings;
  for (const LostNode& loss : losses)
    trainings.push_back(std::async(std::launch::async, leftOf, rule, places, loss));
  for (std::size_t i = 0; i < losses.size(); ++i) {
    CAPTURE(losses[i].node);
    CAPTURE(losses[i].after);
    const auto left = trainings[i].get();
    if (losses[i].node == 1 && losses[i].after >= 0) CHECK_CONTAINS(left.problems[0], "node 1 (virtual1)");
    for (const auto& problem : left.problems) CHECK_FALSE(problem.empty());
    // Each is that of a committed merge, and nodes may be one merge apart.
    const auto first = place(left.models[0]);
    std::ptrdiff_t least = first, most = first;
    for (const auto& model : left.models) {
      least = std::min(least, place(model));
      most = std::max(most, place(model));
    }
    CHECK(most - least <= 1);
    // A checkpoint of that merge may fail, because it needs the lost node.
    const auto before = first - (left.checkpoint ? place(*left.checkpoint) : 0);
    CHECK((before == 0 || before == 1));
  }
}

}  // namespace

TEST_CASE("a node that is lost at any moment is named, and every model holds a committed merge") {
  for (const auto& rule : someRules()) {
    if (!runsOverNodes(rule.options, 2)) continue;
    std::vector<LostNode> losses = {{1, 400}, {1, 1900}, {0, 2900}, {1, -1}};
    if (whole()) losses.insert(losses.end(), {{1, 2600}, {1, 3300}, {0, 1500}});
    checkLosses(rule.options, {2, 1}, losses);
  }
}

TEST_CASE("a silent node is named under every rule that mixes replicas, too") {
  std::vector<Places> every = {{3, 1}};
  if (whole()) every.push_back({2, 2});
  for (const auto& places : every)
    for (const auto& rule : mixingRules(places.all()))
      checkLosses(rule, places, {{1, 1500}, {1, 4000}, {0, 2000}, {1, -1}});
}

namespace {

/// Calls `use` with rules whose only merge within the first 6 iterations is launched after 3 and lands
/// after 5.
void eachFlyingRule(const std::function<void(const AnyStrategy& rule)>& use) {
  constexpr auto kept = UpdaterState::Keep;
  const OverlappedAveraging::Pull pull{.strength = 0.6};
  for (const AnyStrategy& rule : std::vector<AnyStrategy>{
           OverlappedAveraging{.frequency = 5, .delay = 2, .updaterState = kept},
           OverlappedAveraging{
               .frequency = 5, .delay = 2, .landing = pull, .momentum = 0.7, .updaterState = kept},
           StreamingOuter{.frequency = 5, .fragments = 1, .delay = 2, .updaterState = kept},
           StreamingOuter{
               .frequency = 5, .fragments = 1, .delay = 2, .updaterState = kept, .codec = Int8Codec{}}}) {
    CAPTURE(rule.make()->describe());
    use(rule);
  }
}

}  // namespace

TEST_CASE("workers train while a launched merge is sent, and the bits are the same") {
  const auto batches = randomBatches(9, 4 * 6, 3, kRuleWidth);
  eachFlyingRule([&](const AnyStrategy& rule) {
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
    onAll(network, [&](const Nodes& here) {
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
      CHECK(stateBits(model) == stateBits(expected));
    });
  });
}

TEST_CASE("if the network fails while a merge is in flight, one error names the node") {
  eachFlyingRule([&](const AnyStrategy& rule) {
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
    for (const auto& problem : problems) CHECK_CONTAINS(problem, "(virtual");
    CHECK_CONTAINS(problems[0], "node 1 (virtual1)");
  });
}

TEST_CASE("a stop lands all merges in flight, and all nodes have the same model") {
  eachFlyingRule([&](const AnyStrategy& rule) {
    const auto batches = randomBatches(9, 4 * 20, 3, kRuleWidth);
    const auto bits = fromAll(2, [&](const Nodes& here) {
      auto model = ruleToy();
      ToyIterator share(batches, kRuleWidth);
      auto wrapper = builderOf(model, 2, rule).nodes(here).build();
      model.control().onStep = [&](const Batch& batch) {
        if (here.node() == 1 && batch.stamp.iteration == 3) wrapper.stopFit();
      };
      wrapper.fit(share, 1);
      CHECK(model.iteration() >= 4);
      CHECK(model.iteration() < 20);
      const auto stopped = stateBits(model);  // with the iteration
      wrapper.fit(share, 1);                  // nothing left behind disturbs another training
      return stopped;
    });
    CHECK(bits[0] == bits[1]);
  });
}
