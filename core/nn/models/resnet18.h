#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "muster/core/base/size2d.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/layers/batch_norm.h"

namespace muster {

/// Options of `resnet18`.
struct Resnet18Options {
  Size2d imageSize{28, 28};
  /// Channels of the first stage; each later stage has twice as many as the one before. The paper has 64.
  std::int64_t width = 64;
  Init init = Init::he();         ///< of all weights
  bool synchronisedNorm = false;  ///< see BatchNorm
  double normMomentum = 0.1;      ///< see BatchNorm
  /// For photographs, as in the paper: a 7x7 convolution with stride 2 at the start, then a maximum over 3x3
  /// with stride 2.
  bool largeImages = false;
};

/// ResNet-18 for images [channels, H, W]: at the start a 3x3 convolution with stride 1 and no pooling, as for
/// Fashion-MNIST and CIFAR-10 (see `largeImages`), then four stages of two residual blocks, the mean of each
/// channel, and a dense layer. Convolutions have no bias, because a batch normalisation follows each; a block
/// that changes channels and size has a normalised 1x1 convolution as shortcut.
///
/// The input is called "image", the output "output". The caller sets seed, updater and regularisation.
/// @throws InvalidArgument for sizes below 1.
/// Source: He et al. 2016, "Deep residual learning for image recognition".
ComputationGraphConfiguration resnet18(std::int64_t classes, std::int64_t channels = 1,
                                       const Resnet18Options& options = {});

/// The names of its layers here and in torchvision's `resnet18`, for `loadWeights` and `saveWeights`
/// (core/io/weights.h). torchvision's network has `largeImages`.
std::vector<std::pair<std::string, std::string>> resnet18InTorchvision();

}  // namespace muster
