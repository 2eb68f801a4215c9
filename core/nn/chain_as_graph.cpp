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
  const auto layers = chain.outputShapes();
  std::string last = input;
  for (std::size_t i = 0; i < c.layers.size(); ++i) last = graph.add(layers[i].first, c.layers[i], {last});
  graph.addOutput(last);
  auto converted = std::make_unique<ComputationGraph>(std::move(graph));
  converted->init();
  converted->copyStateFrom(chain, /*withUpdaterState=*/true);
  converted->setInputDescription(chain.inputDescription());
  return converted;
}

}  // namespace muster
