#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/core/interop/dl4j/detail/conversion.h"
#include "muster/core/nn/network.h"

namespace muster::dl4j::detail {

/// The logarithms of which a network's variances `tensor` were computed when a file was read; null if there
/// are none, or the variances have changed since. They are kept with the network (`Model::listenerState`),
/// because logarithms computed from the variances would be others in their last bits.
const Tensor* keptLogarithms(Network& network, const std::string& tensor);

/// The vectors in which Deeplearning4j keeps all parameters of a network, and the state of its updater.
///
/// Parameters with equal updaters that follow one another share a block of the state: its first array for all
/// of them, then its second.
class FlatState {
 public:
  /// @param conversion  must outlive it.
  /// @throws InvalidArgument for a parameter that its network does not have.
  explicit FlatState(const Conversion& conversion);

  std::int64_t parameterCount() const;
  std::int64_t stateCount() const;
  /// Fills parameters and statistics of an initialised network from as many values.
  void putParameters(Network& network, std::span<const float> values) const;
  void putState(Network& network, std::span<const float> values) const;
  /// The values of a network that has the same parameters.
  /// @throws InvalidArgument for one that has not.
  std::vector<float> takeParameters(Network& network) const;
  std::vector<float> takeState(Network& network) const;

 private:
  struct Target {
    const PlacedParameter* placed;
    std::int64_t count;
  };

  /// Calls `visit(target, tensor)` in the file's order.
  template <typename Visit>
  void eachParameter(Network& network, const Visit& visit) const;
  template <typename Visit>
  void eachState(Network& network, const Visit& visit) const;

  std::vector<Target> targets_;
  std::int64_t states_ = 0;  // arrays of the updater
};

}  // namespace muster::dl4j::detail
