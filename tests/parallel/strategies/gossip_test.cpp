#include "muster/parallel/strategies/gossip.h"

#include "muster/parallel/exchange/host_exchange.h"
#include "tests/parallel/replicas.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/on_merge.h"
#include "tests/support/rounding.h"

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

/// Replicas that the rule mixes without training in between. @param value  of element i of worker w
struct Mixed {
  Mixed(GossipGraph graph, int workers, std::int64_t elements, double (*value)(int w, std::int64_t i))
      : strategy(Gossip{.graph = graph}.make()),
        weights(static_cast<std::size_t>(workers), 1),
        replicas(firstWorkers(workers), {{"parameters", BlockKind::Parameters, MergeRule::Average, elements}},
                 [&](int w, std::size_t, std::int64_t i) { return value(w, i); }),
        exchange(replicas.states, UpdaterState::Average),
        means(meansNow(elements)) {
    exchange.makeStrategyBlocks(strategy->blocks(workers));
    strategy->begin(exchange);
  }
  void round() {
    const Round now{.weights = weights};
    strategy->prepare(now);
    for (int w = 0; w < exchange.participants(); ++w) {
      MergeOps ops(exchange, w, context);
      strategy->land(0, now, ops);
    }
  }
  /// Of each element, over all workers.
  std::vector<double> meansNow(std::int64_t elements) const {
    std::vector<double> all;
    for (std::int64_t i = 0; i < elements; ++i) {
      double sum = 0;
      for (std::size_t w = 0; w < weights.size(); ++w) sum += replicas.values(w)[i];
      all.push_back(sum / static_cast<double>(weights.size()));
    }
    return all;
  }

  std::unique_ptr<Strategy> strategy;
  std::vector<double> weights;
  Replicas replicas;
  HostExchange exchange;
  const std::vector<double> means;  // before the first round
  Context context;
};

}  // namespace

TEST_CASE("the graphs' matrices are doubly stochastic, and as sparse as promised") {
  for (const auto graph : kGraphs)
    for (const std::size_t workers : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33})
      for (std::int64_t round = 0; round < 40; ++round) {
        INFO("graph ", nameOf(graph), ", workers ", workers, ", round ", round);
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
  const std::size_t peers[] = {5, 4, 2, 5};  // of worker 0, by round
  for (const std::size_t round : {0, 1, 2, 3})
    CHECK(neighbourhood(GossipGraph::Exponential, 0, 6, static_cast<std::int64_t>(round)) ==
          Workers{0, peers[round]});
  CHECK(neighbourhood(GossipGraph::Ring, 0, 4, 7) == Workers{0, 1, 3});
}

TEST_CASE("one peer a round on the exponential graph gives the exact mean after log2(workers) rounds") {
  for (const int workers : {2, 4, 8, 16, 6}) {
    CAPTURE(workers);
    Mixed mixed(GossipGraph::Exponential, workers, 20,
                [](int w, std::int64_t i) { return static_cast<double>((37 * w + 11 * i) % 201 - 100); });
    bool exact = true;
    for (int hop = 1; hop < workers; hop *= 2) mixed.round();
    for (int w = 0; w < workers; ++w)
      for (std::size_t i = 0; i < 20; ++i)
        exact = exact && mixed.replicas.values(w)[i] == static_cast<float>(mixed.means[i]);
    CHECK(exact == (workers != 6));
  }
}

TEST_CASE("mixing keeps the mean of the replicas, which is the merged copy") {
  for (const auto graph : kGraphs)
    for (const int workers : {2, 3, 4, 5, 8}) {
      INFO("graph ", nameOf(graph), ", workers ", workers);
      Mixed mixed(graph, workers, 5, [](int w, std::int64_t i) { return std::sin(7.0 * w + i); });
      for (int round = 1; round <= 6; ++round) {
        mixed.round();
        const auto means = mixed.meansNow(5);
        for (std::size_t i = 0; i < 5; ++i) {
          // Each round rounds each replica once, with values below 1; the merged copy is rounded, too.
          CHECK(std::abs(means[i] - mixed.means[i]) <= roundings(round));
          CHECK(std::abs(mixed.exchange.blocks()[0].mergedCopy().data<float>()[i] - mixed.means[i]) <=
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
    const Gossip ring{.graph = GossipGraph::Ring, .measureDistance = true};
    wrapperOf(model, 4, ring, devices, {listener}).fit(data);
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
        INFO("every ", every, ", devices ", devices);
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
  CHECK(std::vector(models.begin(), models.end() - 1) == std::vector<float>{0, 0, 14, 14});
  CHECK(model.parameters()[0] == models[4]);
  CHECK(models[4] >= 15);
}
