#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "muster/core/device/context.h"
#include "muster/core/ops/conv2d.h"

namespace muster::cuda {

/// Settings from environment variables, for measurements of the gain of single features. Each variable that
/// is set is logged once as a warning. Results have the bits of the selected implementation.
struct Switches {
  bool sideStream = true;                 ///< MUSTER_CUDA_SIDE_STREAM=0: no side stream
  bool graphs = true;                     ///< MUSTER_CUDA_GRAPHS=0: steps are not recorded
  std::optional<MathMode> mathMode = {};  ///< MUSTER_CUDA_MATH=fp32; used if the program gives none
  std::map<std::string, Conv2dChoice, std::less<>> conv2d =
      {};  ///< MUSTER_CUDA_CONV2D=conv1=row-major,conv2=...

  /// The choice for a layer's convolution; Auto if neither the layer nor "all" has one.
  Conv2dChoice choiceFor(std::string_view layer) const;
};

/// @param value  returns an environment variable's value; null if it is not set.
/// @throws InvalidArgument naming a variable with an invalid value.
Switches readSwitches(const std::function<const char*(const char* name)>& value);

/// A warning if MUSTER_CUDA_CONV2D names layers that were not planned; "" if there is nothing to warn of.
std::string unknownLayers(const Switches& switches, const std::set<std::string, std::less<>>& planned);

/// The switches of this process, read at the first call.
const Switches& switches();

/// Remembers the name of a layer whose convolution is planned; "" is none. Thread-safe.
void notePlanned(std::string_view layer);
/// Logs the warning of `unknownLayers` for the layers planned so far, once. Thread-safe; never throws.
void warnOfUnknownLayers() noexcept;

}  // namespace muster::cuda
