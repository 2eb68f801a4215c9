#include "muster/parallel/strategies/synchronous_gradients.h"

#include "muster/parallel/strategies/named_strategy.h"

namespace muster {
namespace {

class SynchronousGradientsStrategy final : public Strategy {
 public:
  std::string describe() const override { return "averaging gradients every iteration"; }
  StrategyTraits traits(int) const override {
    return {.localWork = LocalWork::Gradient,
            .replicasDiffer = false,
            .extrapolates = false,
            .mayThrow = false,
            .used = {BlockKind::Gradients, BlockKind::Statistics}};
  }
  /// @throws InvalidArgument unless there are gradients for the parameters.
  void begin(const Exchange& exchange) override {
    const Tensor& parameters = exchange.block(BlockKind::Parameters).replicas[0];
    const Tensor& gradients = exchange.block(BlockKind::Gradients).replicas[0];
    require(parameters.shape() == gradients.shape() && parameters.dtype() == gradients.dtype(),
            "synchronous gradients: the model's gradients are {}, its parameters {}", gradients.toString(),
            parameters.toString());
  }
  RoundPlan plan(const TrainingProgress&) override { return {}; }
  void land(int, const Round& round, MergeOps& ops) override {
    ops.merge(ops.block(BlockKind::Gradients), round.weights);
  }
  void afterReduction(const Round& round, MergeOps& ops) override {
    for (const auto& block : ops.blocks())
      if (block.kind == BlockKind::Statistics) ops.merge(block, round.weights);
  }
  MergeReport report() const override { return {.kind = MergeKind::Gradients}; }
};

}  // namespace

std::unique_ptr<Strategy> SynchronousGradients::make() const {
  return std::make_unique<SynchronousGradientsStrategy>();
}

std::vector<NamedStrategy> SynchronousGradients::named(int) {
  return {{"synchronous", "every iteration all apply the mean of the gradients", "Goyal et al. 2017",
           SynchronousGradients{}}};
}

}  // namespace muster
