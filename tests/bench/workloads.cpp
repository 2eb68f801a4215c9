#include "tests/bench/workloads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "muster/core/base/random.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/models/char_lstm.h"
#include "muster/core/nn/models/mlp.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/bench/networks.h"
#include "tests/bench/operations.h"

namespace muster::bench {

namespace {

double convnetOperations() {
  const double first = convolution(1, 20, 5, 24);
  return 2 * first + 3 * (convolution(20, 50, 5, 8) + product(800, 500) + product(500, 10));
}

double resnet18Operations() {
  double rest = product(512, 10);
  for (std::int64_t in = 64, out = 64, size = 28; out <= 512; in = out, out *= 2, size = (size + 1) / 2) {
    if (in != out) rest += convolution(in, out, 1, size);
    rest += convolution(in, out, 3, size) + 3 * convolution(out, out, 3, size);
  }
  return 2 * convolution(1, 64, 3, 28) + 3 * rest;
}

constexpr std::int64_t kSteps = 128, kWidth = 256, kClasses = 64;  // of the transformer block

double transformerOperations() {
  const double attention = product(kWidth, 4 * kWidth, kSteps) + 2 * product(kSteps, kWidth, kSteps);
  return 3 * (attention + 2 * product(kWidth, 4 * kWidth, kSteps) + product(kWidth, kClasses, kSteps));
}

constexpr std::int64_t kVocabulary = 65, kUnits = 256, kEmbedding = 64, kCharacters = 64;

double charLstmOperations() {
  return 3 * (product(kEmbedding + kUnits, 4 * kUnits, kCharacters) +
              product(2 * kUnits, 4 * kUnits, kCharacters) + product(kUnits, kVocabulary, kCharacters));
}

/// [input channels, output channels, size of the output] of depthwise convolutions 3x3 and the convolutions
/// 1x1 that follow.
struct Block {
  std::int64_t in, out, size, stride;
};
constexpr Block kBlocks[] = {{32, 64, 28, 1}, {64, 128, 14, 2}, {128, 128, 14, 1}, {128, 256, 7, 2}};

double depthwiseOperations() {
  double rest = product(256, 10);
  for (const auto& block : kBlocks)
    rest += convolution(1, block.in, 3, block.size) + convolution(block.in, block.out, 1, block.size);
  return 2 * convolution(1, 32, 3, 28) + 3 * rest;
}

MultiLayerConfiguration depthwise() {
  MultiLayerConfiguration network{.seed = 1, .updater = Sgd{.learningRate = 0.01}};
  const auto add = [&](Conv2d convolution) {
    convolution.bias = false;
    network.layers.push_back(convolution);
    network.layers.push_back(BatchNorm{.activation = Activation::ReLU});
  };
  add({.outChannels = 32, .kernel = {3, 3}, .padding = {1, 1}});
  for (const auto& block : kBlocks) {
    add({.outChannels = block.in,
         .kernel = {3, 3},
         .stride = {block.stride, block.stride},
         .padding = {1, 1},
         .groups = block.in});
    add({.outChannels = block.out});
  }
  network.layers.push_back(GlobalPool2d{.kind = PoolKind::Average});
  network.layers.push_back(Output{.classes = 10});
  return network;
}

/// Normalisation before attention and before the two dense layers, each with a sum around it.
ComputationGraphConfiguration transformer() {
  ComputationGraphConfiguration network{
      .seed = 1, .updater = Sgd{.learningRate = 0.01}, .inputs = {{.name = "x", .shape = {kSteps, kWidth}}}};
  network.add("norm1", LayerNorm{}, {"x"});
  network.add("attention", SelfAttention{.heads = 8}, {"norm1"});
  network.add("sum1", Combine{}, {"x", "attention"});
  network.add("norm2", LayerNorm{}, {"sum1"});
  network.add("wide", Dense{.units = 4 * kWidth, .activation = Activation::GELU, .perStep = true}, {"norm2"});
  network.add("narrow", Dense{.units = kWidth, .perStep = true}, {"wide"});
  network.add("sum2", Combine{}, {"sum1", "narrow"});
  network.addOutput(network.add("class", Output{.classes = kClasses, .perStep = true}, {"sum2"}));
  return network;
}

template <typename Configuration>
std::function<std::unique_ptr<Network>(Context&)> chain(Configuration make) {
  return [make](Context& context) -> std::unique_ptr<Network> {
    return std::make_unique<MultiLayerNetwork>(make(), context);
  };
}

std::unique_ptr<Network> graph(ComputationGraphConfiguration configuration, Context& context) {
  configuration.updater = Sgd{.learningRate = 0.01};
  return std::make_unique<ComputationGraph>(std::move(configuration), context);
}

MultiLayerConfiguration smallMlp(std::int64_t hidden) {
  auto network = mlp({hidden}, 10);
  network.updater = Sgd{.learningRate = 0.01};
  return network;
}

/// Values in [0, 1) for features of `shape`, and classes in turns, one for each of `labels`.
InMemoryDataSetIterator random(const Shape& shape, const Shape& labelShape, std::int64_t classes,
                               std::int64_t batch, std::int64_t vocabulary = 0) {
  Tensor features = Tensor::empty(shape, vocabulary ? DType::Int64 : DType::Float32),
         labels = Tensor::empty(labelShape, DType::Int64);
  const RandomStream stream(1, "examples");
  for (std::int64_t i = 0; i < features.elements(); ++i) {
    const double value = stream.uniform(static_cast<std::uint64_t>(i));
    if (vocabulary)
      features.data<std::int64_t>()[i] = static_cast<std::int64_t>(value * static_cast<double>(vocabulary));
    else
      features.data<float>()[i] = static_cast<float>(value);
  }
  for (std::int64_t i = 0; i < labels.elements(); ++i) labels.data<std::int64_t>()[i] = i * 7 % classes;
  return {features, labels, batch, 1};
}

InMemoryDataSetIterator images(std::int64_t batches, std::int64_t batch) {
  return randomImages(batches * batch, batch);
}

InMemoryDataSetIterator rows(std::int64_t batches, std::int64_t batch) {
  return random({batches * batch, 64}, {batches * batch}, 10, batch);
}

std::vector<Workload> make() {
  std::vector<Workload> all;
  all.push_back({.name = "convnet",
                 .title = "MNIST convnet",
                 .batch = 128,
                 .batches = 30,
                 .operations = convnetOperations(),
                 .network = chain([] { return convnet(); }),
                 .data = images,
                 .convolutional = true});
  all.push_back({.name = "resnet18",
                 .title = "ResNet-18, images 1x28x28, plain SGD",
                 .batch = 64,
                 .batches = 8,
                 .operations = resnet18Operations(),
                 .network = [](Context& context) { return graph(resnet18(10), context); },
                 .data = images,
                 .convolutional = true});
  all.push_back({.name = "depthwise",
                 .title = "Depthwise convolutions 3x3 and convolutions 1x1, images 1x28x28",
                 .batch = 64,
                 .batches = 16,
                 .operations = depthwiseOperations(),
                 .network = chain(depthwise),
                 .data = images,
                 .convolutional = true});
  for (const std::int64_t hidden : {64, 256})
    all.push_back({.name = fmt::format("mlp{}", hidden),
                   .title = fmt::format("Multilayer perceptron 64-{}-10", hidden),
                   .batch = hidden == 64 ? 32 : 128,
                   .batches = 600,
                   .operations = 2 * product(64, hidden) + 3 * product(hidden, 10),
                   .network = chain([hidden] { return smallMlp(hidden); }),
                   .data = rows});
  all.push_back({.name = "char-lstm",
                 .title = "Two LSTMs of 256 units, 64 steps",
                 .batch = 32,
                 .batches = 8,
                 .operations = charLstmOperations(),
                 .network = chain([] {
                   auto network = charLstm(kVocabulary, {.units = kUnits, .embedding = kEmbedding});
                   network.updater = Sgd{.learningRate = 0.01};
                   return network;
                 }),
                 .data = [](std::int64_t batches, std::int64_t batch) {
                   const Shape shape{batches * batch, kCharacters};
                   return random(shape, shape, kVocabulary, batch, kVocabulary);
                 }});
  all.push_back(
      {.name = "transformer",
       .title = "A transformer block, width 256, 8 heads, 128 steps",
       .batch = 16,
       .batches = 8,
       .operations = transformerOperations(),
       .network = [](Context& context) { return graph(transformer(), context); },
       .data =
           [](std::int64_t batches, std::int64_t batch) {
             return random({batches * batch, kSteps, kWidth}, {batches * batch, kSteps}, kClasses, batch);
           }});
  return all;
}

}  // namespace

const std::vector<Workload>& workloads() {
  static const auto all = make();
  return all;
}

const Workload& workload(std::string_view name) {
  const auto found = std::ranges::find(workloads(), name, &Workload::name);
  if (found != workloads().end()) return *found;
  std::vector<std::string> names;
  for (const auto& one : workloads()) names.push_back(one.name);
  throw std::invalid_argument(
      fmt::format("there is no network {}: use {} or all", name, fmt::join(names, ", ")));
}

}  // namespace muster::bench
