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

/// What a call of a program may switch by environment variables, to see what it gains. Each variable that is
/// set is told once, as a warning. For measurements; results have the bits of the way that is switched to.
struct Switches {
  bool sideStream = true;                 ///< MUSTER_CUDA_SIDE_STREAM=0: all in order
  bool graphs = true;                     ///< MUSTER_CUDA_GRAPHS=0: nothing is recorded
  std::optional<MathMode> mathMode = {};  ///< MUSTER_CUDA_MATH=fp32, where none is given
  std::map<std::string, Conv2dChoice, std::less<>> conv2d =
      {};  ///< MUSTER_CUDA_CONV2D=conv1=row-major,conv2=...

  /// What the convolution of this layer is to be; Auto if nothing was said of it or of "all".
  Conv2dChoice choiceFor(std::string_view layer) const;
};

/// @param value  of an environment variable; null: it is not set.
/// @throws InvalidArgument naming a variable with a value that it does not take.
Switches readSwitches(const std::function<const char*(const char* name)>& value);

/// A warning if MUSTER_CUDA_CONV2D names layers that none of those planned has; "" if there is none to give.
std::string unknownLayers(const Switches& switches, const std::set<std::string, std::less<>>& planned);

/// Of this process, read when they are first asked for.
const Switches& switches();

/// Remembers the name of a layer whose convolution is planned; "" is none. Thread-safe.
void notePlanned(std::string_view layer);
/// Gives that warning for the layers planned so far, once. Thread-safe; never throws.
void warnOfUnknownLayers() noexcept;

}  // namespace muster::cuda
