#include "tests/fuzz/networks.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/compile/network_probe.h"
#include "muster/core/nn/layers.h"
#include "muster/core/optim/updaters.h"
#include "tests/fuzz/input_file.h"

namespace muster::fuzz {

std::vector<MultiLayerConfiguration> smallChains() {
  const MultiLayerConfiguration images{
      .seed = 7,
      .updater =
          Nesterovs{.learningRate = WarmUpSchedule{.iterations = 5, .then = CosineSchedule{.initial = 0.1}}},
      .l2 = 5e-4,
      .clipNorm = 1,
      .inputShape = {2, 6, 6},
      .layers = {Conv2d{.outChannels = 2, .kernel = {3, 3}, .padding = {1, 1}}, BatchNorm{},
                 ActivationLayer{.activation = Activation::Tanh}, MaxPool2d{.kernel = {2, 2}},
                 ConvTranspose2d{.outChannels = 2, .kernel = {2, 2}, .stride = {2, 2}},
                 AveragePool2d{.kernel = {2, 2}, .stride = {1, 1}}, Upsample2d{},
                 ZeroPad2d{.padding = {1, 0, 0, 1}}, GlobalPool2d{}, Reshape{.shape = {2, 1}}, Flatten{},
                 Scale{.factor = 0.5}, Dropout{.rate = 0.25}, Dense{.units = 3, .init = Init::he()},
                 Output{.classes = 3}}};
  const MultiLayerConfiguration sequences{
      .updater = Sgd{.learningRate = StepSchedule{.initial = 0.2, .decay = 0.5, .every = 4}},
      .inputShape = {5},
      .layers = {Embedding{.vocabulary = 6, .features = 4}, LayerNorm{}, SelfAttention{.heads = 2},
                 LSTM{.units = 3}, GRU{.units = 3}, MeanOverTime{}, Output{.classes = 2}}};
  const MultiLayerConfiguration signals{.updater = RmsProp{.learningRate = ExponentialSchedule{}},
                                        .inputShape = {6, 2},
                                        .layers = {Conv1d{.outChannels = 3, .kernel = 3, .causal = true},
                                                   MaxPool1d{}, AveragePool1d{.kernel = 2}, LastStep{},
                                                   Output{.classes = 2, .loss = Loss::MeanSquaredError}}};
  MultiLayerConfiguration tiny{.updater = Lion{}, .inputShape = {2}, .layers = {Output{.classes = 2}}};
  return {images, sequences, signals, tiny};
}

std::vector<MultiLayerConfiguration> wideChains() {
  std::vector<MultiLayerConfiguration> all;
  const auto images = [&](const Shape& shape, const Layer& layer) {
    all.push_back({.inputShape = shape, .layers = {layer, GlobalPool2d{}, Output{.classes = 2}}});
  };
  const auto sequences = [&](const Layer& layer) {
    all.push_back({.inputShape = {9, 16}, .layers = {layer, MeanOverTime{}, Output{.classes = 2}}});
  };
  images({16, 6, 6}, Conv2d{.outChannels = 16, .kernel = {3, 3}, .padding = {1, 1}});
  images({16, 6, 6}, Conv2d{.outChannels = 32, .kernel = {1, 1}});
  images({16, 8, 8}, Conv2d{.outChannels = 16, .kernel = {3, 3}, .groups = 16});
  images({3, 17, 17}, Conv2d{.outChannels = 16, .kernel = {3, 3}, .stride = {2, 2}});
  images({1, 20, 20}, Conv2d{.outChannels = 8, .kernel = {5, 5}, .activation = Activation::ReLU});
  images({16, 6, 6}, ConvTranspose2d{.outChannels = 5, .kernel = {3, 3}, .stride = {2, 2}});
  images({17, 8, 8}, BatchNorm{.activation = Activation::ReLU});
  images({16, 8, 8}, MaxPool2d{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
  images({16, 8, 8}, AveragePool2d{.kernel = {3, 3}, .stride = {2, 2}});
  images({16, 5, 5}, Upsample2d{.mode = UpsampleMode::Bilinear});
  sequences(LSTM{.units = 16});
  sequences(GRU{.units = 16});
  sequences(SelfAttention{.heads = 4});
  sequences(LayerNorm{});
  sequences(Conv1d{.outChannels = 16, .kernel = 3});
  all.push_back({.inputShape = {40}, .layers = {Dense{.units = 33}, Output{.classes = 33}}});
  return all;
}

ComputationGraphConfiguration smallGraph() {
  ComputationGraphConfiguration graph{.updater = AdaGrad{}, .inputs = {{"left", {4}}, {"right", {4}}}};
  graph.add("both", Merge{}, {"left", "right"});
  graph.add("half", Subset{.from = 0, .to = 4}, {"both"});
  graph.add("sum", Combine{}, {"half", "right"});
  graph.add("first", Output{.classes = 2}, {"sum"});
  graph.add("second", Output{.classes = 3}, {"both"});
  graph.addOutput("first");
  graph.addOutput("second", 0.5);
  return graph;
}

bool isSmall(const Network& network, std::int64_t most) {
  std::int64_t elements = 0;
  const auto add = [&](const Shape& shape) { elements = std::min(elements + shape.elements(), most + 1); };
  for (const auto& node : detail::NetworkProbe::layOut(network).nodes) {
    add(node.output);
    for (const auto& shape : node.inputShapes) add(shape);
    for (const auto& specs :
         {node.module->parameters(node.inputShapes), node.module->statistics(node.inputShapes)})
      for (const auto& spec : specs) add(spec.shape);
  }
  return elements <= most;
}

Bytes savedBytes(Network& network) {
  return writtenBy([&](const auto& path) { network.save(path); });
}

}  // namespace muster::fuzz
