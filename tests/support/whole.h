#pragma once

#include <cstdlib>

namespace muster::test {

/// Whether tests run whole, as in `./run soak`: every rule, size and moment, instead of some of each kind.
inline bool whole() {
  return std::getenv("MUSTER_LONG") != nullptr;
}

}  // namespace muster::test
