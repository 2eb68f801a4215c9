#pragma once

#include <filesystem>

#include "muster/core/nn/network.h"

namespace muster {

/// How a network becomes an ONNX model.
struct OnnxOptions {
  /// The model has a further input `lengths`, int32 [N]: the number of real steps of each sequence; what
  /// comes after them is padding. It takes the place of the mask called "features", with one limit: padding
  /// is at a sequence's end only. Without it all steps are real.
  bool lengths = false;
};

/// Writes the network's predictions, as `output()` gives them, as an ONNX model (opset 17, IR version 8) that
/// onnxruntime and others run. Losses, updater and counters are not part of it.
///
/// Inputs and outputs have the network's names for them (the input of a chain is called "features", its
/// output as its last layer), with the batch as a symbolic dimension `N`. Features are float32, indices
/// int64; images that a batch holds as bytes are given as value / 255. The length of sequences is symbolic,
/// `T`, if every layer takes any length; a dense layer over a whole sequence fixes it. Weights have the names
/// of muster's own files ("conv1.weight"), except those of LSTM and GRU, whose gates have another order
/// there.
///
/// The model is checked by ONNX's own checker and shape inference before it is written. The write is atomic.
/// Layers of your own need `registerOnnx` (onnx_layer.h).
/// @throws InvalidArgument before `init()`, for a layer without a rule (naming it), for `lengths` if no layer
///         reads them or one reads them after the length has changed, for weights of 2 GB or more; FileError.
void exportOnnx(Network& network, const std::filesystem::path& path, const OnnxOptions& options = {});

}  // namespace muster
