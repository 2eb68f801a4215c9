#pragma once

#include <cstdlib>
#include <string_view>

namespace muster {

/// The number of processes that a launcher has started, from its environment variable; "1" without a
/// launcher.
/// Processes that meet in a store have the last variable.
inline std::string_view launchedProcesses() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MUSTER_NODES"})
    if (const char* const size = std::getenv(name)) return size;
  return "1";
}

}  // namespace muster
