#pragma once

#include <cstdint>
#include <vector>

#include "muster/core/nn/multi_layer_network.h"

namespace muster {

/// Options of `mlp`.
struct MlpOptions {
  Activation activation = Activation::ReLU;  ///< of the hidden layers
  Init init = Init::xavier();                ///< of all weights
  double dropout = 0;                        ///< rate after each hidden layer; 0: none
};

/// A multilayer perceptron: dense layers of the given hidden units, then classes. The input shape is taken
/// from the first batch. The caller sets seed, updater and regularisation.
MultiLayerConfiguration mlp(const std::vector<std::int64_t>& hidden, std::int64_t classes,
                            const MlpOptions& options = {});

}  // namespace muster
