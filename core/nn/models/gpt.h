#pragma once

#include <cstdint>

#include "muster/core/nn/computation_graph.h"

namespace muster {

/// Options of `gpt`.
struct GptOptions {
  std::int64_t layers = 4;      ///< blocks; at least 1
  std::int64_t heads = 4;       ///< of each attention; divides `features`
  std::int64_t features = 128;  ///< of each step
  double dropout = 0;           ///< rate after each attention and each dense part; 0: none
};

/// A transformer that predicts the next symbol at each step of a text: an embedding, then blocks of causal
/// self-attention and a dense part of 4 `features` hidden units with GELU, each normalised before and added
/// to what it read, then a normalisation and an output at each step. Reads int64 [N, T] of indices below
/// `vocabulary`; labels are the same shifted by one. The input is called "text", the output "output", and its
/// shape [T] is taken from the first batch. There is no embedding of positions: causal attention learns them
/// from what it cannot see. The caller sets seed, updater and regularisation.
/// @throws InvalidArgument for a vocabulary of fewer than 2, fewer than 1 layer, or heads that do not divide
/// the features.
/// Sources: Radford et al. 2019; without positions Haviv et al. 2022, "Transformer language models without
/// positional encodings still learn positional information".
ComputationGraphConfiguration gpt(std::int64_t vocabulary, const GptOptions& options = {});

}  // namespace muster
