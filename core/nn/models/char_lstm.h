#pragma once

#include <cstdint>

#include "muster/core/nn/multi_layer_network.h"

namespace muster {

struct CharLstmOptions {
  std::int64_t units = 256;     ///< of each LSTM
  std::int64_t layers = 2;      ///< LSTMs, one behind the other; at least 1
  std::int64_t embedding = 64;  ///< features of a character
  double dropout = 0;           ///< rate behind each LSTM; 0: none
  Init init = Init::xavier();   ///< of all weights but the embedding's
  Init embeddingInit = Init::normal(1);
};

/// A model that tells at each step of a text which character comes next: an embedding, LSTMs, and an output
/// over each step. Reads int64 [N, T] of indices below `vocabulary`; labels are the same shifted by one. Its
/// input shape [T] is taken from the first batch. Seed, updater and regularisation are the caller's to set.
/// @throws InvalidArgument for a vocabulary of fewer than 2, or fewer than 1 layer.
MultiLayerConfiguration charLstm(std::int64_t vocabulary, const CharLstmOptions& options = {});

}  // namespace muster
