#include "muster/parallel/strategies/gossip.h"

#include "muster/parallel/exchange/host_exchange.h"
#include "tests/parallel/one_segment.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/parallel/strategies/reference.h"
#include "tests/support/on_merge.h"
#include "tests/support/recording_listener.h"
#include "tests/support/rounding.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::array kGraphs = {GossipGraph::Exponential, GossipGraph::Ring, GossipGraph::Pairs,
                                GossipGraph::Complete};

std::vector<std::size_t> neighbourhood(GossipGraph graph, std::size_t worker, std::size_t workers,
                                       std::int64_t round) {
  std::vector<std::size_t> all;
  gossipNeighbourhood(graph, worker, workers, round, all);
  return all;
}

/// Element [i][j] is the weight of replica j in replica i after mixing, if all trained equally many examples.
std::vector<std::vector<double>> matrix(GossipGraph graph, std::size_t workers, std::int64_t round) {
  std::vector all(workers, std::vector<double>(workers));
  for (std::size_t i = 0; i < workers; ++i) {
    const auto row = neighbourhood(graph, i, workers, round);
    for (const std::size_t j : row) all[i][j] = 1.0 / static_cast<double>(row.size());
  }
  return all;
}

constexpr double kLargest = 16;  // above all parameters of the toy models

/// Records the last value of each merge.
std::shared_ptr<Listener> recordValues(std::vector<double>& all) {
  return onMerge([&all](const MergeEvent& event) {
    CHECK(event.values.front().name == "period");
    CHECK(event.values.back().name == "distance to the mean");
    all.push_back(event.values.back().value);
  });
}

/// Replicas that the rule mixes without training in between.
struct Mixed {
  Mixed(GossipGraph graph, int workers, std::int64_t elements)
      : strategy(Gossip{.graph = graph}.make()), weights(static_cast<std::size_t>(workers), 1) {
    const auto table = oneSegment(elements);
    for (int w = 0; w < workers; ++w)
      owned.push_back(StateBlock::zeros("parameters", BlockKind::Parameters, MergeRule::Average, table));
    std::vector<std::vector<StateBlock*>> states;
    for (auto& block : owned) states.push_back({&block});
    exchange = std::make_unique<HostExchange>(states, UpdaterState::Average);
    exchange->makeStrategyBlocks(strategy->blocks(workers));
    strategy->begin(*exchange);
  }
  void round() {
    const Round now{.weights = weights};
    strategy->prepare(now);
    for (int w = 0; w < exchange->participants(); ++w) {
      MergeOps ops(*exchange, w, context);
      strategy->land(0, now, ops);
    }
  }
  float& at(std::size_t worker, std::int64_t i) { return owned[worker].values.data<float>()[i]; }
  double mean(std::int64_t i) {
    double sum = 0;
    for (std::size_t w = 0; w < owned.size(); ++w) sum += at(w, i);
    return sum / static_cast<double>(owned.size());
  }

  std::unique_ptr<Strategy> strategy;
  std::vector<double> weights;
  std::vector<StateBlock> owned;
  std::unique_ptr<Exchange> exchange;
  Context context;
};

}  // namespace

TEST_CASE("against NumPy: gossip") {
  if (!numpyFound()) return;
  for (const auto graph : kGraphs)
    for (const int frequency : {1, 3})
      checkAgainstNumpy("gossip", fmt::format("graph={} frequency={}", nameOf(graph), frequency),
                        Gossip{.graph = graph, .frequency = frequency});
  checkAgainstNumpy("gossip", "graph=ring frequency=2 state=keep",
                    Gossip{.graph = GossipGraph::Ring, .frequency = 2, .updaterState = UpdaterState::Keep});
  checkAgainstNumpy("gossip", "graph=pairs frequency=2 state=reset",
                    Gossip{.graph = GossipGraph::Pairs, .frequency = 2, .updaterState = UpdaterState::Reset});
  for (const auto& [name, codec] : codecsInNumpy())
    for (const auto graph : {GossipGraph::Ring, GossipGraph::Complete})
      checkAgainstNumpy("gossip", fmt::format("graph={} frequency=2 codec={}", nameOf(graph), name),
                        Gossip{.graph = graph, .frequency = 2, .codec = codec});
}

TEST_CASE("the graphs' matrices are doubly stochastic, and as sparse as promised") {
  for (const auto graph : kGraphs)
    for (const std::size_t workers : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33})
      for (std::int64_t round = 0; round < 40; ++round) {
        CAPTURE(nameOf(graph));
        CAPTURE(workers);
        CAPTURE(round);
        const auto all = matrix(graph, workers, round);
        bool good = true;
        for (std::size_t i = 0; i < workers; ++i) {
          double row = 0, column = 0;
          std::size_t others = 0;
          for (std::size_t j = 0; j < workers; ++j) {
            row += all[i][j];
            column += all[j][i];
            others += j != i && all[i][j] > 0 ? 1 : 0;
            if (graph != GossipGraph::Exponential) good = good && all[i][j] == all[j][i];
          }
          // Sums of at most 33 equal numbers.
          good = good && std::abs(row - 1) < 1e-14 && std::abs(column - 1) < 1e-14 && all[i][i] > 0;
          good = good && others <= (graph == GossipGraph::Complete ? workers - 1
                                    : graph == GossipGraph::Ring   ? 2u
                                                                   : 1u);
        }
        CHECK(good);
      }
}

TEST_CASE("with Pairs each two workers mix once in a tournament; exponential hops are 1, 2, 4, ..") {
  for (const std::size_t workers : {2, 3, 4, 5, 8, 9}) {
    CAPTURE(workers);
    const auto rounds = static_cast<std::int64_t>(workers - 1 + workers % 2);
    for (std::size_t i = 0; i < workers; ++i)
      for (std::size_t j = 0; j < workers; ++j) {
        int met = 0;
        for (std::int64_t r = 5; r < 5 + rounds; ++r)
          met += matrix(GossipGraph::Pairs, workers, r)[i][j] == 0.5 ? 1 : 0;
        CHECK(met == (i == j ? static_cast<int>(rounds - workers % 2) : 1));
      }
  }
  using Workers = std::vector<std::size_t>;
  CHECK(neighbourhood(GossipGraph::Exponential, 0, 6, 0) == Workers{0, 5});
  CHECK(neighbourhood(GossipGraph::Exponential, 0, 6, 1) == Workers{0, 4});
  CHECK(neighbourhood(GossipGraph::Exponential, 0, 6, 2) == Workers{0, 2});
  CHECK(neighbourhood(GossipGraph::Exponential, 0, 6, 3) == Workers{0, 5});
  CHECK(neighbourhood(GossipGraph::Ring, 0, 4, 7) == Workers{0, 1, 3});
}

TEST_CASE("one peer a round on the exponential graph gives the exact mean after log2(workers) rounds") {
  for (const int workers : {2, 4, 8, 16, 6}) {
    CAPTURE(workers);
    Mixed mixed(GossipGraph::Exponential, workers, 20);
    for (std::size_t w = 0; w < mixed.owned.size(); ++w)
      for (std::int64_t i = 0; i < 20; ++i)
        mixed.at(w, i) = static_cast<float>((37 * w + 11 * i) % 201) - 100;
    std::vector<double> means;
    for (std::int64_t i = 0; i < 20; ++i) means.push_back(mixed.mean(i));
    bool exact = true;
    for (int hop = 1; hop < workers; hop *= 2) mixed.round();
    for (std::size_t w = 0; w < mixed.owned.size(); ++w)
      for (std::int64_t i = 0; i < 20; ++i)
        exact = exact && mixed.at(w, i) == static_cast<float>(means[static_cast<std::size_t>(i)]);
    CHECK(exact == (workers != 6));
  }
}

TEST_CASE("mixing keeps the mean of the replicas, which is the merged copy") {
  for (const auto graph : kGraphs)
    for (const int workers : {2, 3, 4, 5, 8}) {
      CAPTURE(nameOf(graph));
      CAPTURE(workers);
      Mixed mixed(graph, workers, 5);
      for (std::size_t w = 0; w < mixed.owned.size(); ++w)
        for (std::int64_t i = 0; i < 5; ++i) mixed.at(w, i) = static_cast<float>(std::sin(7.0 * w + i));
      std::vector<double> means;
      for (std::int64_t i = 0; i < 5; ++i) means.push_back(mixed.mean(i));
      for (int round = 1; round <= 6; ++round) {
        mixed.round();
        for (std::int64_t i = 0; i < 5; ++i) {
          const double mean = means[static_cast<std::size_t>(i)];
          // Each round rounds each replica once, with values below 1; the merged copy is rounded, too.
          CHECK(std::abs(mixed.mean(i) - mean) <= roundings(round));
          CHECK(std::abs(mixed.exchange->blocks()[0].mergedCopy().data<float>()[i] - mean) <=
                roundings(round + 1));
        }
      }
    }
}

TEST_CASE("rounds equal those worked out by hand: a ring of four, of which two train alone") {
  // p = 0, learning rate 0.5. Replicas 3, 6, 9, 12; the neighbours of 0 are 1 and 3.
  for (const int devices : {0, 1, 2}) {
    CAPTURE(devices);
    ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}}});
    const auto before = [&](std::int64_t iteration) {
      std::vector<float> all(4);
      for (const auto& step : model.control().steps())
        if (step.stamp.iteration == iteration)
          all[static_cast<std::size_t>(step.stamp.sequence % 4)] = step.before[0];
      return all;
    };
    auto data = ToyIterator::ofValues({6, 12, 18, 24, 0, 0, 0, 0});
    // From 7, 6, 9 and 8 to their mean: sqrt((1/4 + 9/4 + 9/4 + 1/4) / 4) / 7.5. The next round halves them,
    // and mixing keeps a third of the differences from the mean: on a ring of four all other eigenvalues are
    // 1/3 or -1/3.
    std::vector<double> distances;
    const auto listener = recordValues(distances);
    auto builder = ParallelWrapper::Builder(model);
    builder.workers(4).pinThreads(false).internals({.pretendedDevices = devices}).listeners({listener});
    builder.strategy(Gossip{.graph = GossipGraph::Ring, .measureDistance = true}).build().fit(data);
    REQUIRE(distances.size() == 2);
    CHECK(distances[0] == doctest::Approx(std::sqrt(1.25) / 7.5).epsilon(1e-6));
    CHECK(distances[1] == doctest::Approx(distances[0] / 3).epsilon(1e-5));
    CHECK(before(1) == std::vector<float>{7, 6, 9, 8});
    CHECK(model.parameters()[0] == 3.75f);  // the mean of 7, 6, 9 and 8, halved
    // Replicas 3 and 6; the two idle ones have weight 0, but are mixed: 4.5, 4.5, 6, 3.
    model.setParameters({0});
    model.control().forgetSteps();
    auto two = ToyIterator::ofValues({6, 12});
    auto wrapper = wrapperOf(model, 4, Gossip{.graph = GossipGraph::Ring}, devices);
    wrapper.fit(two);
    CHECK(model.parameters()[0] == 4.5f);
    auto four = ToyIterator::ofValues({0, 0, 0, 0});
    wrapper.fit(four);
    CHECK(before(3) == std::vector<float>{4.5, 4.5, 6, 3});
  }
}

TEST_CASE("forming the replicas' mean rarely changes no replica") {
  for (const Gossip& rule :
       {Gossip{}, Gossip{.graph = GossipGraph::Ring}, Gossip{.graph = GossipGraph::Pairs},
        Gossip{.graph = GossipGraph::Ring, .codec = Int8Codec{}}}) {
    CAPTURE(rule.make()->describe());
    struct Trained {
      std::vector<ToyStep> steps;
      std::vector<float> parameters;
    };
    const auto trained = [&](std::int64_t every, int devices, std::int64_t first) {
      auto model = ruleToy();
      ToyIterator data(ruleBatches(4), kRuleWidth);
      Gossip seldom = rule;
      seldom.modelEvery = every;
      auto wrapper = wrapperOf(model, 4, seldom, devices);
      wrapper.fit(data, first);
      wrapper.fit(data, 3 - first);
      return Trained{model.control().steps(), model.parameters()};
    };
    const Trained always = trained(1, 0, 3);
    for (const std::int64_t every : {2, 3, 1000})
      for (const int devices : {0, 2}) {
        CAPTURE(every);
        CAPTURE(devices);
        const Trained seldom = trained(every, devices, devices == 0 ? 1 : 3);
        REQUIRE(seldom.steps.size() == always.steps.size());
        bool same = true;
        for (std::size_t i = 0; i < seldom.steps.size(); ++i)
          same = same && seldom.steps[i].before == always.steps[i].before;
        CHECK(same);
        // The mean of the mixed replicas has one rounding more than that of the replicas before.
        for (std::size_t i = 0; i < seldom.parameters.size(); ++i)
          CHECK(std::abs(seldom.parameters[i] - always.parameters[i]) <= roundings(3, kLargest));
      }
  }
}

TEST_CASE("between two means listeners get the last one, and a stop forms a new one") {
  // Learning rate 0.5, replicas pulled to 8, 16, 24: their mean is pulled to 16, and mixing does not change
  // it. From 0: 8, 12, 14, 15, 15.5, ...
  ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}}});
  std::vector<float> models;
  const auto looking = onMerge([&](const MergeEvent& event) {
    event.trainer.model();
    models.push_back(model.parameters()[0]);
    if (models.size() == 4) event.trainer.stopFit();
  });
  auto data = ToyIterator::ofValues({8, 16, 24, 8, 16, 24, 8, 16, 24, 8, 16, 24, 8, 16, 24, 8, 16, 24});
  wrapperOf(model, 3, Gossip{.graph = GossipGraph::Ring, .modelEvery = 3}, 0, {looking}).fit(data);
  REQUIRE(models.size() == 5);
  CHECK(models[0] == 0);
  CHECK(models[1] == 0);
  CHECK(models[2] == 14);
  CHECK(models[3] == 14);
  CHECK(model.parameters()[0] == models[4]);
  CHECK(models[4] >= 15);
}

TEST_CASE("options out of range are refused by name") {
  const auto refusal = [](const Gossip& options) {
    return thrown<InvalidArgument>([&] { options.validate(); });
  };
  CHECK(refusal({.graph = static_cast<GossipGraph>(9)}) == "gossip: there is no graph 9");
  CHECK(refusal({.frequency = 0}) == "gossip: every must be between 1 and 1099511627776, got 0");
  CHECK(refusal({.modelEvery = 0}) == "gossip: modelEvery must be between 1 and 1099511627776, got 0");
  CHECK(refusal({.modelEvery = 2, .measureDistance = true}) ==
        "gossip: measureDistance needs the mean of the replicas in every round, but modelEvery is 2");
  CHECK(Gossip{.frequency = 2}.make()->describe() == "gossip (exponential) every 2 iterations");
}
