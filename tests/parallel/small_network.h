#pragma once

#include <algorithm>

#include "muster/core/data/in_memory.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/toy_data.h"

namespace muster::test {

/// A classification problem that a small network learns.
inline InMemoryDataSetIterator points(std::int64_t batch) {
  constexpr std::int64_t kPoints = 240, kFeatures = 6;
  Tensor features = Tensor::empty({kPoints, kFeatures}), labels = Tensor::empty({kPoints}, DType::Int64);
  const auto drawn = randomBatches(11, 1, kPoints, kFeatures).front().values;
  for (std::int64_t n = 0; n < kPoints; ++n) {
    const float* x = drawn.data() + n * kFeatures;
    std::copy_n(x, kFeatures, features.data<float>() + n * kFeatures);
    labels.data<std::int64_t>()[n] = x[0] + x[1] > 0 ? 1 : 0;
  }
  return {features, labels, batch};
}

inline std::unique_ptr<MultiLayerNetwork> smallNetwork(Context* context = nullptr) {
  const MultiLayerConfiguration configuration{
      .seed = 4,
      .updater = Nesterovs{.learningRate = 0.05, .momentum = 0.9},
      .inputShape = {6},
      .layers = {Dense{.units = 16, .activation = Activation::Tanh}, Output{.classes = 2}}};
  auto network = context ? std::make_unique<MultiLayerNetwork>(configuration, *context)
                         : std::make_unique<MultiLayerNetwork>(configuration);
  network->init();
  return network;
}

}  // namespace muster::test
