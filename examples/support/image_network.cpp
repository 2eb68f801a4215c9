#include "examples/support/image_network.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/core/nn/multi_layer_network.h"

namespace example {
namespace {

using namespace muster;

std::unique_ptr<Network> convnet(const ImageNetwork& o) {
  return std::make_unique<MultiLayerNetwork>(MultiLayerConfiguration{
      .seed = o.seed,
      .updater = o.updater,
      .l2 = o.l2,
      .inputShape = o.image,
      .layers = {Conv2d{.outChannels = 20, .kernel = {5, 5}}, MaxPool2d{.kernel = {2, 2}},
                 Conv2d{.outChannels = 50, .kernel = {5, 5}}, MaxPool2d{.kernel = {2, 2}},
                 Dense{.units = 500, .activation = Activation::ReLU}, Output{.classes = o.classes}}});
}

std::unique_ptr<Network> residualNetwork(const ImageNetwork& o) {
  auto graph = resnet18(o.classes, o.image[0],
                        {.imageSize = {o.image[1], o.image[2]}, .width = o.width, .init = o.init});
  graph.seed = o.seed;
  graph.updater = o.updater;
  graph.l2 = o.l2;
  return std::make_unique<ComputationGraph>(std::move(graph));
}

}  // namespace

std::unique_ptr<Network> makeImageNetwork(const ImageNetwork& options) {
  require(std::ranges::find(kImageModels, options.model) != kImageModels.end(),
          "there is no network {}; there are {}", options.model, fmt::join(kImageModels, ", "));
  auto network = options.model == "resnet18" ? residualNetwork(options) : convnet(options);
  network->init();
  return network;
}

std::int64_t parametersOf(Network& network) {
  std::int64_t count = 0;
  for (const auto& segment : network.block(BlockKind::Parameters).segments->segments)
    count += segment.shape.elements();
  return count;
}

}  // namespace example
