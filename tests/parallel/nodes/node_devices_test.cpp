// Trainings over nodes with workers on devices. Devices are simulated on the CPU: a replica and its mirror
// are in different memory, as on a GPU. A GPU is used if there is one.

#include "muster/core/ops/linear_combination.h"
#include "tests/parallel/on_nodes.h"
#include "tests/parallel/resumable.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/parallel/small_network.h"
#include "tests/support/devices.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

ParallelWrapper::Builder onDevices(Model& model, int workers, const AnyStrategy& strategy, int devices) {
  return builderOf(model, workers, strategy).internals({.pretendedDevices = devices});
}

/// Checks that workers on so many simulated devices of each node get the bits of workers on the CPU in
/// groups.
void checkOnDevices(const AnyStrategy& rule, const Places& places, int devices = 2) {
  const auto fit = [&](ParallelWrapper& wrapper, Model& model) {
    float next = 0;
    for (float& p : model.block(BlockKind::Parameters).values.span<float>()) p = next += 0.125F;
    ToyIterator data(ruleBatches(places.all()), kRuleWidth);
    wrapper.fit(data, 3);
    wrapper.fit(data, 1);
  };
  checkLikeOneProcess(rule, places, ruleToy, fit, devices);
}

/// A rule that merges gradients with a decay, so its operations read parameters, and that changes the
/// replicas at the start.
struct DecayedGradients {
  struct Rule final : Strategy {
    std::string describe() const override { return "gradients with decay"; }
    StrategyTraits traits(int) const override { return {.localWork = LocalWork::Gradient}; }
    void start(MergeOps& ops) override {
      const auto& own = ops.block(BlockKind::Parameters).replicas;
      const auto all = Fragment::whole(ops.block(BlockKind::Parameters).mergedCopy().elements());
      ops.combine(own, {{1, own}, {0.25, own}}, all);
    }
    RoundPlan plan(const TrainingProgress&) override { return {}; }
    void land(int, const Round& round, MergeOps& ops) override {
      const SharedBlock& gradients = ops.block(BlockKind::Gradients);
      const auto all = Fragment::whole(ops.block(BlockKind::Parameters).mergedCopy().elements());
      ops.merge(gradients, round.weights);
      ops.combine(gradients.replicas,
                  {{1, gradients.replicas}, {0.125, ops.block(BlockKind::Parameters).replicas}}, all);
    }
    void afterReduction(const Round& round, MergeOps& ops) override {
      ops.merge(ops.block(BlockKind::Statistics), round.weights);
    }
    MergeReport report() const override { return {.kind = MergeKind::Gradients}; }
  };
  void validate() const {}
  std::unique_ptr<Strategy> make() const { return std::make_unique<Rule>(); }
};

/// A rule whose workers each prepare what they send, and halve their replicas, before they wait for each
/// other.
struct Prepared {
  struct Rule final : Strategy {
    std::string describe() const override { return "prepared by each worker"; }
    std::vector<StrategyBlock> blocks(int) const override {
      return {{.name = "sent", .place = StrategyBlock::Place::Replica, .saved = false}};
    }
    RoundPlan plan(const TrainingProgress&) override { return {.iterations = 2}; }
    void contribute(double, MergeOps& ops) override {
      const auto own = static_cast<std::size_t>(ops.participant());
      const Tensor& replica = ops.block(BlockKind::Parameters).replicas[own];
      const auto scale = [&](double factor, const Tensor& into) {
        linearCombination(std::array{Term{factor, replica}}, into, 0, replica.elements(), ops.context());
      };
      scale(3, ops.own("sent")[own]);
      scale(0.5, replica);
    }
    void land(int, const Round& round, MergeOps& ops) override {
      const SharedBlock& parameters = ops.block(BlockKind::Parameters);
      const auto all = Fragment::whole(parameters.mergedCopy().elements());
      ops.mean(ops.own("sent"), round.weights, parameters.mergedCopies, all);
      ops.combine(parameters.replicas, {{0.25, parameters.mergedCopies}, {0.5, parameters.replicas}}, all);
      ops.mergeOthers(round.weights);
    }
  };
  void validate() const {}
  std::unique_ptr<Strategy> make() const { return std::make_unique<Rule>(); }
};

/// What a checkpoint holds at each merge on node 0 of two, and at the end.
std::vector<Held> heldAtMerges(const AnyStrategy& rule, int devices) {
  std::vector<Held> held;
  onAll(2, [&](const Nodes& here) {
    auto model = ruleToy();
    ToyIterator share(ruleBatches(4), kRuleWidth);
    const auto holder = std::make_shared<Holder>(&held);
    onDevices(model, 2, rule, devices).nodes(here).listeners({holder}).build().fit(share, 2);
    if (here.node() == 0) held.push_back(holder->atEnd());
  });
  return held;
}

}  // namespace

TEST_CASE("every rule over nodes with workers on devices has the bits of workers on the CPU in groups") {
  for (const Places places : {Places{2, 2}, Places{3, 1}})
    for (const auto& rule : someRules()) {
      if (!runsOverNodes(rule.options, places.all())) continue;
      checkOnDevices(rule.options, places);
    }
  // An uneven number of workers on two devices.
  for (const AnyStrategy& rule :
       {AnyStrategy(Averaging{.frequency = 3}), AnyStrategy(SynchronousGradients{}),
        AnyStrategy(OuterAveraging{.frequency = 2, .codec = Int8Codec{}}),
        AnyStrategy(SharedGradients{.resynchronizationFrequency = 4}), AnyStrategy(Gossip{.frequency = 2})})
    checkOnDevices(rule, {2, 3});
}

TEST_CASE("user-defined rules read and write replicas on devices over nodes") {
  for (const Places places : {Places{2, 2}, Places{2, 1}}) {
    for (const int devices : {0, 2}) {
      checkOnDevices(DecayedGradients{}, places, devices);
      checkOnDevices(Prepared{}, places, devices);
    }
  }
}

TEST_CASE("a checkpoint over nodes is the same with workers on devices and on the CPU") {
  for (const AnyStrategy& rule :
       {AnyStrategy(Averaging{.frequency = 3}), AnyStrategy(SynchronousGradients{}),
        AnyStrategy(Averaging{.frequency = 3, .updaterState = UpdaterState::Keep}),
        AnyStrategy(OuterAveraging{.frequency = 2, .rate = 0.7, .momentum = 0.5, .codec = E3M0Codec{}}),
        AnyStrategy(SharedGradients{.resynchronizationFrequency = 4}), AnyStrategy(Adasum{.frequency = 3}),
        AnyStrategy(OverlappedAveraging{.frequency = 3, .delay = 1}),
        AnyStrategy(Gossip{.graph = GossipGraph::Ring, .updaterState = UpdaterState::Keep}),
        AnyStrategy(HierarchicalAveraging{.levels = {{.period = 1, .group = 2}, {.period = 3}}})}) {
    CAPTURE(rule.make()->describe());
    const auto expected = heldAtMerges(rule, 0), held = heldAtMerges(rule, 2);
    REQUIRE(held.size() == expected.size());
    for (std::size_t m = 0; m < held.size(); ++m) CHECK(held[m].difference(expected[m]) == "");
    const Held& middle = held[held.size() / 2];
    if (middle.training.empty()) continue;  // this rule's replicas differ after a merge
    auto end = ruleToy();
    expected.back().giveTo(end);
    onAll(2, [&](const Nodes& here) {
      auto model = ruleToy();
      middle.giveTo(model);
      ToyIterator share(ruleBatches(4), kRuleWidth);
      onDevices(model, 2, rule, 2).nodes(here).build().fit(share, 2 - model.epoch());
      CHECK(stateBits(model) == stateBits(end));
    });
  }
}

TEST_CASE("the plan says that nodes merge through host memory, and groups on GPUs are refused by name") {
  onAll(2, [&](const Nodes& here) {
    auto model = ruleToy();
    const auto wrapper = onDevices(model, 2, Averaging{}, 1).nodes(here).build();
    CHECK(contains(wrapper.plan(), "merged over 2 nodes by "));
    CHECK(contains(wrapper.plan(), ", through host memory"));
    CHECK_FALSE(contains(builderOf(model, 2, Averaging{}).nodes(here).build().plan(), "host memory"));
  });
  auto model = ruleToy();
  const auto refused = thrown<InvalidArgument>(
      [&] { builderOf(model, 2, Averaging{}).groups(2).devices({Device::cuda(0)}).build(); });
  CHECK(contains(refused, "groups: workers on GPUs are not supported yet"));
}

TEST_CASE_ON("workers of two nodes on one GPU learn as those on the CPU do, with the same bits in each run",
             Where, OnGpu) {
  const auto train = [](const AnyStrategy& rule, Device device) {
    const auto parameters = fromAll(2, [&](const Nodes& here) {
      auto model = smallNetwork();
      auto data = points(20);
      builderOf(*model, 2, rule)
          .nodes(here)
          .devices({device})
          .mathMode(MathMode::Float32)
          .build()
          .fit(data, 3);
      const auto values = model->block(BlockKind::Parameters).values.span<float>();
      return std::vector<float>(values.begin(), values.end());
    });
    CHECK(parameters[0] == parameters[1]);
    return parameters[0];
  };
  for (const AnyStrategy& rule : {AnyStrategy(Averaging{.frequency = 2}), AnyStrategy(SynchronousGradients{}),
                                  AnyStrategy(OverlappedAveraging{.frequency = 3, .delay = 1})}) {
    CAPTURE(rule.make()->describe());
    const auto cpu = train(rule, Device::cpu()), gpu = train(rule, Device::cuda(0));
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < cpu.size(); ++i) {
      difference += std::pow(gpu[i] - cpu[i], 2);
      norm += std::pow(cpu[i], 2);
    }
    CHECK(std::sqrt(difference / norm) < 1e-3);  // roundings differ
    CHECK(gpu == train(rule, Device::cuda(0)));
  }
}
