#pragma once

#include <array>
#include <cstdint>

#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/layers/batch_norm.h"

namespace muster {

struct Resnet18Options {
  std::array<std::int64_t, 2> imageSize{28, 28};
  /// Channels of the first stage; each of the three others has twice those of the one before. 64 in the
  /// paper.
  std::int64_t width = 64;
  Init init = Init::he();         ///< of all weights
  bool synchronisedNorm = false;  ///< see BatchNorm
  double normMomentum = 0.1;      ///< likewise
};

/// ResNet-18 for small images [channels, H, W]: a convolution 3x3 with stride 1 and no pooling at the start,
/// as for Fashion-MNIST and CIFAR-10, then four stages of two residual blocks, the mean of each channel, and
/// a dense layer. Convolutions have no bias, as a batch normalisation follows each; where a block changes
/// channels and size, its shortcut is a normalised convolution 1x1.
///
/// The input is called "image", the output "output". Seed, updater and regularisation are the caller's to
/// set.
/// @throws InvalidArgument for sizes below 1.
/// Source: He et al. 2016, "Deep residual learning for image recognition".
ComputationGraphConfiguration resnet18(std::int64_t classes, std::int64_t channels = 1,
                                       const Resnet18Options& options = {});

}  // namespace muster
