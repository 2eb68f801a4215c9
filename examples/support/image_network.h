#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "muster/core/nn/network.h"

namespace example {

/// A network for small images, and how it is trained.
struct ImageNetwork {
  std::string model = "resnet18";  ///< one of `kImageModels`
  muster::Shape image = {1, 28, 28};
  std::int64_t classes = 10;
  std::uint64_t seed = 0;
  muster::Updater updater = {};
  double l2 = 0;
  std::int64_t width = 64;                 ///< channels of resnet18's first stage
  muster::Init init = muster::Init::he();  ///< of resnet18's weights
};

/// The networks there are: `convnet`, that of Deeplearning4j's acceptance test, and `resnet18`.
inline constexpr std::array<std::string_view, 2> kImageModels{"convnet", "resnet18"};

/// A network with its first weights. @throws muster::InvalidArgument for a model that there is not.
std::unique_ptr<muster::Network> makeImageNetwork(const ImageNetwork& options);

/// How many numbers a network with weights learns.
std::int64_t parametersOf(muster::Network& network);

}  // namespace example
