#include "muster/parallel/strategies/averaging.h"

#include <doctest/doctest.h>

#include "tests/parallel/no_exchange.h"

using namespace muster;

namespace {

/// Records the merges requested from it.
class RecordingExchange final : public test::NoExchange {
 public:
  RecordingExchange() : NoExchange(/*participants=*/3) {
    blocks_.resize(3);
    blocks_[0].name = "parameters";
    blocks_[1].name = "velocity";
    blocks_[1].kind = BlockKind::UpdaterState;
    blocks_[2].name = "gradients";
    blocks_[2].kind = BlockKind::Gradients;
    for (auto& block : blocks_) block.replicas.assign(3, Tensor::zeros({25}));
  }
  void merge(int participant, const SharedBlock& block, std::span<const double> weights, Context&,
             Spread* spread) override {
    if (spread) *spread = {.distance = 1.0 + participant, .norm = 8};
    merged += fmt::format("{} {} {};", participant, block.name, weights[2]);
  }
  std::string merged;
};

}  // namespace

TEST_CASE("each block except the gradients is merged with the unchanged weights") {
  const auto strategy = Averaging{}.make();
  RecordingExchange exchange;
  strategy->begin(exchange);
  Context context;
  MergeOps ops(exchange, 2, context);
  const std::vector<double> weights = {1, 0, 2.5};
  strategy->land(0, {.weights = weights}, ops);
  CHECK(exchange.merged == "2 parameters 2.5;2 velocity 2.5;");
  CHECK(ops.bytes() == 200);
}

TEST_CASE("the divergence is measured on request, over all slices of the parameters") {
  RecordingExchange exchange;
  Context context;
  const std::vector<double> weights = {1, 0, 2.5};
  const auto measured = [&](bool measure) {
    const auto strategy = Averaging{.measureDivergence = measure}.make();
    strategy->begin(exchange);
    for (int participant = 0; participant < 3; ++participant) {
      MergeOps ops(exchange, participant, context);
      strategy->land(0, {.weights = weights}, ops);
    }
    return strategy->report().divergence;
  };
  CHECK(measured(true) == 0.5);  // sqrt((1 + 2 + 3) / (3 * 8))
  CHECK(measured(false) == 0);
}
