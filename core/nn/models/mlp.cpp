#include "muster/core/nn/models/mlp.h"

namespace muster {

MultiLayerConfiguration mlp(const std::vector<std::int64_t>& hidden, std::int64_t classes,
                            const MlpOptions& options) {
  MultiLayerConfiguration configuration;
  for (const std::int64_t units : hidden) {
    configuration.layers.push_back(
        Dense{.units = units, .activation = options.activation, .init = options.init});
    if (options.dropout != 0) configuration.layers.push_back(Dropout{.rate = options.dropout});
  }
  configuration.layers.push_back(Output{.classes = classes, .init = options.init});
  return configuration;
}

}  // namespace muster
