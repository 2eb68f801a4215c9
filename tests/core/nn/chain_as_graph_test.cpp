#include "muster/core/nn/chain_as_graph.h"

#include "tests/core/nn/test.h"

using namespace muster;

TEST_CASE("a chain as a graph has its outputs and trains on to the same bits, as does a new graph like it") {
  const Shape image{2, 8, 7};
  MultiLayerNetwork chain({.seed = 3,
                           .updater = Adam{.learningRate = 0.01},
                           .l2 = 1e-3,
                           .clipNorm = 0.5,
                           .inputShape = image,
                           .layers = {Conv2d{.outChannels = 4, .kernel = {3, 3}}, BatchNorm{}, MaxPool2d{},
                                      Dropout{.rate = 0.3}, Dense{.units = 8}, Output{.classes = 3}}});
  chain.init();
  ComputationGraph fresh(asGraph(chain)->configuration());
  CHECK(fresh.configuration().inputs.front().name == "features");
  fresh.init();
  CHECK(fresh.block(BlockKind::Parameters).segments->segments.back().name == "output.bias");
  std::unique_ptr<ComputationGraph> graph;
  for (std::int64_t step = 0; step < 20; ++step) {
    Batch batch = test::classBatch(image, 8 + step % 3, 3, 40 + static_cast<std::uint64_t>(step));
    batch.stamp = {.sequence = step, .iteration = step, .firstExample = 8 * step};
    if (step == 3) {
      graph = asGraph(chain);
      CHECK(test::sameBits(graph->outputs(batch)[0], chain.outputs(batch)[0]));
    }
    const double score = chain.step(batch).wait().score;
    CHECK(fresh.step(batch).wait().score == score);
    if (graph) CHECK(graph->step(batch).wait().score == score);
  }
  CHECK(test::stateBits(fresh) == test::stateBits(chain));
  CHECK(test::stateBits(*graph) == test::stateBits(chain));
}
