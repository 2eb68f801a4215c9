#include "muster/core/nn/chain_as_graph.h"

#include "muster/core/nn/layers.h"
#include "tests/support/state_bits.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

Batch eightRows() {
  Batch batch;
  Tensor features = Tensor::zeros({8, 3}), labels = Tensor::zeros({8}, DType::Int64);
  for (std::int64_t i = 0; i < 24; ++i) features.data<float>()[i] = 0.1f * static_cast<float>(i % 7) - 0.2f;
  for (std::int64_t i = 0; i < 8; ++i) labels.data<std::int64_t>()[i] = i % 2;
  batch.features = {{"features", features}};
  batch.labels = {{"labels", labels}};
  return batch;
}

}  // namespace

TEST_CASE("a chain as a graph has its outputs, and trains on to the same bits") {
  MultiLayerNetwork chain(
      {.seed = 4,
       .updater = Adam{.learningRate = 0.05},
       .l2 = 0.01,
       .clipNorm = 0.5,
       .inputShape = {3},
       .layers = {Dense{.units = 5, .activation = Activation::Tanh}, BatchNorm{}, Output{.classes = 2}}});
  chain.init();
  const Batch batch = eightRows();
  Model& first = chain;
  first.step(batch);
  const auto graph = asGraph(chain);
  Model& second = *graph;
  const auto outputs = [&](Model& model) {
    Tensor out;
    model.output(batch, out);
    return std::vector<float>(out.span<float>().begin(), out.span<float>().end());
  };
  CHECK(outputs(first) == outputs(second));
  for (int i = 0; i < 3; ++i) {
    first.step(batch);
    second.step(batch);
  }
  CHECK(outputs(first) == outputs(second));
  CHECK(test::stateBits(first) == test::stateBits(second));
  CHECK(graph->configuration().inputs.front().name == "features");
}
