#pragma once

#include <filesystem>

#include "muster/core/nn/multi_layer_network.h"

namespace muster {

/// Reads the state of a saved network into one of the same architecture: parameters, statistics, the
/// updater's state and the counters, all bit for bit, so that training goes on as if it had never stopped.
/// What else the configuration says (learning rate, seed, ...) stays as `network` has it.
///
/// `network` is initialised where it is not. It is not touched unless the whole file fits.
/// @throws FileError naming the layer that differs, or the tensor that is missing, unexpected or of another
///         shape or type.
void loadState(MultiLayerNetwork& network, const std::filesystem::path& path);

}  // namespace muster
