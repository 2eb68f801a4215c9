#include "muster/core/nn/chain_as_graph.h"

#include <string>
#include <utility>

namespace muster {

std::unique_ptr<ComputationGraph> asGraph(MultiLayerNetwork& chain) {
  const auto& c = chain.configuration();
  const std::string input = "features";
  ComputationGraphConfiguration graph{.seed = c.seed,
                                      .updater = c.updater,
                                      .l1 = c.l1,
                                      .l2 = c.l2,
                                      .weightDecay = c.weightDecay,
                                      .clipNorm = c.clipNorm,
                                      .clipValue = c.clipValue,
                                      .accumulate = c.accumulate,
                                      .inputs = {{.name = input, .shape = c.inputShape}}};
  const auto nodes = chain.outputShapes();
  std::string last = input;
  std::size_t node = 0;
  for (const auto& layer : c.layers) {
    // A Flatten that the chain puts before a layer of rows is a node, too. The graph puts one there as well.
    const std::string& name = nodes[node].first;
    const bool flattens = node + 1 < nodes.size() && name == nodes[node + 1].first + ".flatten";
    if (flattens && layer.module().name() != name) ++node;
    last = graph.add(nodes[node++].first, layer, {last});
  }
  graph.addOutput(last);
  auto converted = std::make_unique<ComputationGraph>(std::move(graph));
  converted->init();
  converted->copyStateFrom(chain, /*withUpdaterState=*/true);
  converted->setInputDescription(chain.inputDescription());
  return converted;
}

}  // namespace muster
