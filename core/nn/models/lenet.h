#pragma once

#include <cstdint>

#include "muster/core/base/size2d.h"
#include "muster/core/nn/multi_layer_network.h"

namespace muster {

/// Options of `lenet`.
struct LenetOptions {
  Size2d imageSize{28, 28};
  Activation activation = Activation::ReLU;  ///< of convolutions and dense layers; the paper uses tanh
  Init init = Init::xavier();                ///< of all weights
};

/// LeNet-5 for images [channels, H, W]: two convolutions 5x5 of 6 and 16 channels (the first padded by 2),
/// each followed by a maximum over 2x2, then dense layers of 120 and 84 units. The caller sets seed, updater
/// and regularisation.
/// @throws InvalidArgument for sizes below 1.
/// Source: LeCun et al. 1998, "Gradient-based learning applied to document recognition"; the paper pools by
/// means.
MultiLayerConfiguration lenet(std::int64_t classes, std::int64_t channels = 1,
                              const LenetOptions& options = {});

}  // namespace muster
