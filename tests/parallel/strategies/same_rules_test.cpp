// Rules that are another rule with some of their options: the same bits, on the host and on devices.

#include "tests/parallel/every_rule.h"
#include "tests/parallel/rule_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

using Pull = OverlappedAveraging::Pull;
using Eager = OverlappedAveraging::Eager;
using Levels = std::vector<HierarchicalAveraging::Level>;

constexpr double kForever = std::numeric_limits<double>::infinity();

/// A rule, and others that are the same.
struct Same {
  AnyStrategy rule;
  std::vector<AnyStrategy> others;
};

/// Averaging every so many iterations.
std::vector<Same> likeAveraging(std::int64_t every, int workers) {
  std::vector<Same> all;
  for (const auto state : {UpdaterState::Average, UpdaterState::Keep, UpdaterState::Reset}) {
    Same& same = all.emplace_back(Averaging{.frequency = every, .updaterState = state});
    const int part = (workers + 1) / 2;
    same.others = {
        OuterAveraging{.frequency = every, .updaterState = state},
        OuterAveraging{.frequency = every, .nesterov = true, .updaterState = state},
        OverlappedAveraging{.frequency = every, .delay = 0, .updaterState = state},
        OverlappedAveraging{
            .frequency = every, .delay = 0, .landing = Pull{.strength = 1}, .updaterState = state},
        OverlappedAveraging{.frequency = every, .delay = 0, .landing = Eager{}, .updaterState = state},
        StreamingOuter{.frequency = every, .fragments = 1, .delay = 0, .mixing = 0, .updaterState = state},
        ElasticAveraging{
            .frequency = every, .centreRate = 1, .elasticity = 1, .centreFirst = true, .updaterState = state},
        HierarchicalAveraging{.levels = {{.period = every}}, .updaterState = state},
        Gossip{.graph = GossipGraph::Complete, .frequency = every, .updaterState = state}};
    if (workers % part == 0)
      same.others.push_back(HierarchicalAveraging{
          .levels = Levels{{.period = every, .group = part}, {.period = every}}, .updaterState = state});
    if (workers <= 2)
      for (const auto graph : {GossipGraph::Exponential, GossipGraph::Ring, GossipGraph::Pairs})
        same.others.push_back(Gossip{.graph = graph, .frequency = every, .updaterState = state});
  }
  return all;
}

/// Averaging with a codec.
std::vector<Same> likeCodedAveraging(int workers) {
  std::vector<Same> all;
  for (const Codec& codec :
       {Codec(Bf16Codec{}), Codec(Int8Codec{}), Codec(E3M0Codec{}), Codec(TopKCodec{.share = 0.1})}) {
    Same& same = all.emplace_back(Averaging{.frequency = 2, .codec = codec});
    same.others = {Gossip{.graph = GossipGraph::Complete, .frequency = 2, .codec = codec},
                   HierarchicalAveraging{.levels = {{.period = 2}}, .codec = codec}};
    if (workers == 2)
      same.others.push_back(Gossip{.graph = GossipGraph::Ring, .frequency = 2, .codec = codec});
  }
  return all;
}

/// Outer averaging with momentum.
std::vector<Same> likeOuterAveraging(std::int64_t every, int workers) {
  std::vector<Same> all;
  for (const bool nesterov : {false, true}) {
    OuterAveraging outer{.frequency = every, .rate = 0.7, .momentum = 0.8, .nesterov = nesterov};
    all.push_back({outer,
                   {OverlappedAveraging{
                        .frequency = every, .delay = 0, .rate = 0.7, .momentum = 0.8, .nesterov = nesterov},
                    StreamingOuter{.frequency = every,
                                   .fragments = 1,
                                   .delay = 0,
                                   .mixing = 0,
                                   .rate = 0.7,
                                   .momentum = 0.8,
                                   .nesterov = nesterov}}});
    for (const auto state : {UpdaterState::Keep, UpdaterState::Reset}) {
      outer.updaterState = state;
      // All workers arrive together.
      AsynchronousOuter together{.frequency = every,
                                 .rate = 0.7,
                                 .momentum = 0.8,
                                 .nesterov = nesterov,
                                 .grace = kForever,
                                 .updaterState = state};
      Same& same = all.emplace_back(outer);
      same.others = {together};
      together.grace = 0;
      together.staleness = 0;
      same.others.emplace_back(together);
      if (every > 1 || workers != 2) continue;
      together.speeds = {3, 1};  // one batch per worker and round at any speed
      same.others.emplace_back(together);
    }
  }
  // One worker: Lookahead.
  all.push_back(
      {OuterAveraging{.frequency = every, .rate = 0.3, .updaterState = UpdaterState::Keep},
       {ElasticAveraging{.frequency = every, .centreRate = 0.3, .elasticity = 1, .centreFirst = true}}});
  return all;
}

void check(const std::vector<Same>& all, int workers, int devices) {
  INFO("workers ", workers, ", devices ", devices);
  for (const auto& [rule, others] : all) {
    CAPTURE(rule.make()->describe());
    const auto bits = trainRule(rule, workers, devices);
    for (const AnyStrategy& other : others) {
      CAPTURE(other.make()->describe());
      CHECK(trainRule(other, workers, devices) == bits);
    }
  }
}

}  // namespace

TEST_CASE("with options that say so, rules have the bits of averaging and of outer averaging") {
  for (const int workers : {1, 2, 3})
    for (const auto& [devices, every] : {std::pair<int, std::int64_t>{0, 1}, {0, 3}, {workers, 3}}) {
      check(likeAveraging(every, workers), workers, devices);
      check(likeOuterAveraging(every, workers), workers, devices);
    }
  for (const int workers : {2, 4}) check(likeCodedAveraging(workers), workers, 0);
  check(likeAveraging(3, 4), 4, /*devices=*/1);
}

TEST_CASE("if replicas take nothing of a merge, each worker takes the same steps as on its own") {
  constexpr int kWorkers = 3;
  const auto all = ruleBatches(kWorkers);
  for (const AnyStrategy& rule :
       {AnyStrategy(ElasticAveraging{.frequency = 2, .elasticity = 0}),
        AnyStrategy(OverlappedAveraging{
            .frequency = 3, .delay = 1, .landing = Pull{.strength = 0}, .updaterState = UpdaterState::Keep}),
        AnyStrategy(
            StreamingOuter{.frequency = 3, .fragments = 1, .mixing = 1, .updaterState = UpdaterState::Keep})})
    for (const int devices : {0, 2}) {
      CAPTURE(rule.make()->describe());
      auto model = ruleToy();
      const auto before = model.parameters();
      ToyIterator data(all, kRuleWidth);
      wrapperOf(model, kWorkers, rule, devices).fit(data, kRuleEpochs);
      CHECK(model.parameters() != before);  // the merged ones
      for (std::size_t w = 0; w < kWorkers; ++w) {
        std::vector<ToyBatch> own;
        for (auto b = w; b < all.size(); b += kWorkers) own.push_back(all[b]);
        ToyIterator ownData(own, kRuleWidth);
        auto alone = ruleToy();
        alone.fit(ownData, kRuleEpochs);
        const auto expected = alone.control().steps();
        std::size_t step = 0;
        for (const auto& one : model.control().steps())
          if (one.stamp.sequence % kWorkers == static_cast<std::int64_t>(w))
            CHECK(one.before == expected.at(step++).before);
        CHECK(step == expected.size());
      }
    }
}

TEST_CASE("arrivals one at a time are another rule than outer averaging") {
  CHECK(trainRule(AsynchronousOuter{}) != trainRule(OuterAveraging{.updaterState = UpdaterState::Keep}));
}
