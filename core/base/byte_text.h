#pragma once

#include <string>

namespace muster {

/// As in `1.72 MB`, by factors of 1000.
std::string byteText(double bytes);

}  // namespace muster
