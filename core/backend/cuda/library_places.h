#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::cuda {

/// The files of a library `name` (as "libcudnn.so.9") in the places where CUDA's libraries usually lie and
/// the loader does not look: toolkits in /usr/local, and the wheels `nvidia/*` of the active virtual
/// environment, of the user, of the first `python3` in PATH, and of the system; in this order.
std::vector<std::string> usualPlaces(std::string_view name);

}  // namespace muster::cuda
