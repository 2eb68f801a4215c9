// Trainings over nodes with workers on devices. Devices are simulated on the CPU: a replica and its mirror
// are in different memory, as on a GPU. A GPU is used if there is one.

#include "muster/core/ops/linear_combination.h"
#include "tests/parallel/every_rule.h"
#include "tests/parallel/on_nodes.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/parallel/small_network.h"
#include "tests/support/arrays.h"
#include "tests/support/devices.h"

using namespace muster;
using namespace muster::test;

namespace {

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

}  // namespace

TEST_CASE("every rule over nodes with workers on devices has the bits of workers on the CPU in groups") {
  for (const Places places : {Places{2, 2}, Places{3, 1}})
    for (const auto& rule : someRules()) {
      if (!runsOverNodes(rule.options, places.all())) continue;
      checkOnDevices(rule.options, places);
    }
  // An uneven number of workers on two devices.
  for (const AnyStrategy& rule :
       std::vector<AnyStrategy>{Averaging{.frequency = 3}, SynchronousGradients{},
                                OuterAveraging{.frequency = 2, .codec = Int8Codec{}},
                                SharedGradients{.resynchronizationFrequency = 4}, Gossip{.frequency = 2}})
    checkOnDevices(rule, {2, 3});
}

TEST_CASE("user-defined rules read and write replicas on devices over nodes") {
  for (const Places places : {Places{2, 2}, Places{2, 1}})
    for (const int devices : {0, 2}) {
      checkOnDevices(DecayedGradients{}, places, devices);
      checkOnDevices(Prepared{}, places, devices);
    }
}

TEST_CASE("the plan says that nodes merge through host memory, and groups on GPUs are refused by name") {
  onAll(2, [&](const Nodes& here) {
    auto model = ruleToy();
    const auto plan = [&](int devices) {
      return builderOf(model, 2, Averaging{})
          .internals({.pretendedDevices = devices})
          .nodes(here)
          .build()
          .plan();
    };
    CHECK_CONTAINS(plan(1), "merged over 2 nodes by ");
    CHECK_CONTAINS(plan(1), ", through host memory");
    CHECK_LACKS(plan(0), "host memory");
  });
  auto model = ruleToy();
  CHECK_CONTAINS(thrown<InvalidArgument>(
                     [&] { builderOf(model, 2, Averaging{}).groups(2).devices({Device::cuda(0)}).build(); }),
                 "groups: workers on GPUs are not supported yet");
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
      return floatsOf(model->block(BlockKind::Parameters).values);
    });
    CHECK(parameters[0] == parameters[1]);
    return parameters[0];
  };
  for (const AnyStrategy& rule : std::vector<AnyStrategy>{Averaging{.frequency = 2}, SynchronousGradients{},
                                                          OverlappedAveraging{.frequency = 3, .delay = 1}}) {
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
