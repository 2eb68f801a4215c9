#pragma once

#include <string>

namespace muster {

/// The name of this machine, at most 255 bytes; "" if the system does not say. Thread-safe.
std::string hostName();

}  // namespace muster
