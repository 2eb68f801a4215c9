#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "muster/core/nn/network.h"

/// Models of Deeplearning4j: what its `ModelSerializer` writes, from 1.0.0-beta3 on.
namespace muster::dl4j {

/// What a file leaves open.
struct LoadOptions {
  /// The shape of one example for each input, in muster's order: [F], [C, H, W], or [T, F] for sequences.
  /// Empty: as the file says. It has no length of sequences, and the size of images only if a layer after the
  /// convolutions fixes it. What it leaves open is open here: batches may have any size ([0, F], [C, 0, 0]).
  std::vector<Shape> inputShapes = {};
};

/// Reads a MultiLayerNetwork or ComputationGraph with its parameters, updater's state and counters, so that
/// training continues as it would there. A normaliser of its features becomes the network's first layer.
///
/// The result is a MultiLayerNetwork or a ComputationGraph; layers and vertices keep their names. Float64 and
/// float16 become float32. Images stay [N, C, H, W]; sequences are [N, T, F] here and [N, F, T] there, labels
/// likewise.
/// @throws FileError naming everything that muster has no counterpart for, by layer, in one sentence, or the
///         fault of the file; InvalidArgument for shapes in `options` that are as many as no network's
///         inputs; OutOfMemory naming the file.
std::unique_ptr<Network> load(const std::filesystem::path& path, const LoadOptions& options = {});

/// Writes a network with its state, as Deeplearning4j 1.0.0-M2 would. Complete or not at all. It predicts the
/// same there. It trains on in Deeplearning4j's own form of its updater; a loss that has another factor there
/// is logged as a warning.
/// @throws InvalidArgument before `init()`, or naming every layer and option that Deeplearning4j does not
///         have; FileError if the file cannot be written.
void save(Network& network, const std::filesystem::path& path);

}  // namespace muster::dl4j
