#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/interop/dl4j/detail/description.h"
#include "muster/core/interop/dl4j/detail/parameters.h"
#include "muster/core/nn/network.h"

namespace muster::dl4j::detail {

/// A parameter with what Deeplearning4j compares to place its updater's state.
struct PlacedParameter {
  Parameter parameter;
  std::string updaterKey;  ///< empty: no state
};

/// A description as a network, not yet initialised, with the parameters in the file's order.
struct Conversion {
  std::unique_ptr<Network> network;
  std::vector<PlacedParameter> parameters;
  double initialState = 0;  ///< see TrainingReader
};

/// What is placed before the network's first layer: its normalisation.
using FirstLayers = std::vector<Layer>;

/// @param shapes  of the inputs, or empty.
/// @param first   layers between the input and the first layer; for networks with one input.
/// @throws InvalidArgument if there are problems, or for layers that do not fit each other.
Conversion convert(const Description& description, const std::vector<Shape>& shapes, const FirstLayers& first,
                   Problems& problems);

/// Sizes of the images between the layers.
class ImageSizes {
 public:
  /// From the layer after the convolutions that fixes the size, or from `shapes`.
  ImageSizes(const Description& description, const std::vector<Shape>& shapes);
  /// Height and width of a value; 0: not known.
  std::array<std::int64_t, 2> of(const std::string& value) const;

 private:
  void setBackward(const Description& description);
  void setForward(const Description& description);
  std::map<std::string, std::array<std::int64_t, 2>, std::less<>> sizes_;
};

}  // namespace muster::dl4j::detail
