#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::cuda {

/// The files of a library `name` (such as "libcudnn.so.9") in usual places where the loader does not search:
/// toolkits in /usr/local, then the wheels `nvidia/*` of the active virtual environment, of the user, of the
/// first `python3` in PATH, and of the system.
std::vector<std::string> usualPlaces(std::string_view name);

}  // namespace muster::cuda
