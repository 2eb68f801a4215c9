#pragma once

#include <memory>
#include <string>

#include "muster/core/nn/models/mlp.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/generated_digits.h"
#include "muster/datasets/mnist.h"
#include "muster/parallel/parallel_wrapper.h"

namespace muster::test {

// The training of the elastic nodes in elastic_soak_test.

inline constexpr int kDigitsFrequency = 3;

inline std::unique_ptr<MultiLayerNetwork> digitsModel() {
  auto configuration = mlp({64}, 10);
  configuration.seed = 123;
  configuration.updater = Nesterovs{.learningRate = 0.05, .momentum = 0.9};
  auto model = std::make_unique<MultiLayerNetwork>(configuration);
  return model;
}

struct Digits {
  std::unique_ptr<DataSetIterator> training, test;
};

/// @param directory  of MNIST; "-": generated digits.
inline Digits openDigits(const std::string& directory) {
  if (directory == "-")
    return {std::make_unique<GeneratedDigitsIterator>(64, 6000, 1, true),
            std::make_unique<GeneratedDigitsIterator>(500, 2000, 1, false)};
  return {std::make_unique<MnistDataSetIterator>(128, true, 1, DataOptions{.directory = directory}),
          std::make_unique<MnistDataSetIterator>(1000, false, 1, DataOptions{.directory = directory})};
}

}  // namespace muster::test
