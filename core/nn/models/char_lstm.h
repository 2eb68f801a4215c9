#pragma once

#include <cstdint>

#include "muster/core/nn/multi_layer_network.h"

namespace muster {

/// Options of `charLstm`.
struct CharLstmOptions {
  std::int64_t units = 256;     ///< of each LSTM
  std::int64_t layers = 2;      ///< number of LSTMs; at least 1
  std::int64_t embedding = 64;  ///< features of a character
  double dropout = 0;           ///< rate after each LSTM; 0: none
  Init init = Init::xavier();   ///< of all weights except the embedding's
  Init embeddingInit = Init::normal(1);
};

/// Predicts the next character at each step of a text: an embedding, LSTMs, and an output at each step. Reads
/// int64 [N, T] of indices below `vocabulary`; labels are the same shifted by one. The input shape [T] is
/// taken from the first batch. The caller sets seed, updater and regularisation.
/// @throws InvalidArgument for a vocabulary of fewer than 2, or fewer than 1 layer.
MultiLayerConfiguration charLstm(std::int64_t vocabulary, const CharLstmOptions& options = {});

}  // namespace muster
