#pragma once

#include <cstdint>

#include "muster/core/nn/multi_layer_network.h"

namespace muster {

/// The network of Deeplearning4j's acceptance test of ParallelWrapper, for images [channels, H, W]: two
/// convolutions 5x5 of 20 and 50 channels, each followed by a maximum over 2x2, then a dense layer of 500
/// units. Its defaults are those of the test: seed 123, Nesterov momentum 0.9 at learning rate 0.01, L2 5e-4;
/// you may change them.
MultiLayerConfiguration convnet(std::int64_t classes = 10, const Shape& image = {1, 28, 28});

}  // namespace muster
