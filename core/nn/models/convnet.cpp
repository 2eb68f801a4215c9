#include "muster/core/nn/models/convnet.h"

namespace muster {

MultiLayerConfiguration convnet(std::int64_t classes, const Shape& image) {
  return {.seed = 123,
          .updater = Nesterovs{.learningRate = 0.01, .momentum = 0.9},
          .l2 = 5e-4,
          .inputShape = image,
          .layers = {Conv2d{.outChannels = 20, .kernel = {5, 5}}, MaxPool2d{.kernel = {2, 2}},
                     Conv2d{.outChannels = 50, .kernel = {5, 5}}, MaxPool2d{.kernel = {2, 2}},
                     Dense{.units = 500, .activation = Activation::ReLU}, Output{.classes = classes}}};
}

}  // namespace muster
