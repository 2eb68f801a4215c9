#include "muster/core/nn/models/char_lstm.h"

#include "muster/core/base/error.h"

namespace muster {

MultiLayerConfiguration charLstm(std::int64_t vocabulary, const CharLstmOptions& options) {
  require(vocabulary >= 2, "charLstm: the vocabulary must have at least 2 characters, got {}", vocabulary);
  require(options.layers >= 1, "charLstm: layers must be at least 1, got {}", options.layers);
  MultiLayerConfiguration configuration;
  configuration.layers.push_back(
      Embedding{.vocabulary = vocabulary, .features = options.embedding, .init = options.embeddingInit});
  for (std::int64_t i = 0; i < options.layers; ++i) {
    configuration.layers.push_back(
        LSTM{.units = options.units, .init = options.init, .recurrentInit = options.init});
    if (options.dropout != 0) configuration.layers.push_back(Dropout{.rate = options.dropout});
  }
  configuration.layers.push_back(Output{.classes = vocabulary, .init = options.init, .perStep = true});
  return configuration;
}

}  // namespace muster
