#include "muster/core/nn/models/lenet.h"

#include "muster/core/base/error.h"

namespace muster {

MultiLayerConfiguration lenet(std::int64_t classes, std::int64_t channels, const LenetOptions& options) {
  require(classes >= 1 && channels >= 1 && options.imageSize[0] >= 1 && options.imageSize[1] >= 1,
          "lenet: expected at least one class, channel and pixel, got {}, {} and {} x {}", classes, channels,
          options.imageSize[0], options.imageSize[1]);
  const auto convolution = [&](std::int64_t outChannels, std::int64_t padding) {
    return Conv2d{.outChannels = outChannels,
                  .kernel = {5, 5},
                  .padding = {padding, padding},
                  .activation = options.activation,
                  .init = options.init};
  };
  const auto dense = [&](std::int64_t units) {
    return Dense{.units = units, .activation = options.activation, .init = options.init};
  };
  return {.inputShape = {channels, options.imageSize[0], options.imageSize[1]},
          .layers = {convolution(6, 2), MaxPool2d{}, convolution(16, 0), MaxPool2d{}, dense(120), dense(84),
                     Output{.classes = classes, .init = options.init}}};
}

}  // namespace muster
