#pragma once

#include <cstdint>
#include <vector>

#include "muster/core/nn/multi_layer_network.h"

namespace muster {

struct MlpOptions {
  Activation activation = Activation::ReLU;  ///< of the hidden layers
  Init init = Init::xavier();                ///< of all weights
  double dropout = 0;                        ///< rate behind each hidden layer; 0: none
};

/// A multilayer perceptron: dense layers of so many hidden units, then classes. Its input shape is taken from
/// the first batch. Seed, updater and regularisation are the caller's to set.
MultiLayerConfiguration mlp(const std::vector<std::int64_t>& hidden, std::int64_t classes,
                            const MlpOptions& options = {});

}  // namespace muster
