#pragma once

#include <cstdlib>
#include <string_view>

namespace muster {

/// How many processes a launcher says that it has started, from its environment; "1" without one. The last
/// name is that of `./run nodes --gloo`.
inline std::string_view launchedProcesses() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MUSTER_NODES"})
    if (const char* const size = std::getenv(name)) return size;
  return "1";
}

}  // namespace muster
