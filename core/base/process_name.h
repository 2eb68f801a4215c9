#pragma once

#include <string>
#include <string_view>

namespace muster {

/// Names this process among those that train together, as in "node 1 (hosta)". `Nodes::mpi`, `Nodes::gloo`
/// and `Nodes::elastic` set it. "": no name, the default. Thread-safe.
void setProcessName(std::string_view name);

/// The beginning of a line that this process prints: "muster: " for the program "muster", and with a name
/// "muster: node 1 (hosta): ". Thread-safe.
std::string lineStart(std::string_view program);

}  // namespace muster
