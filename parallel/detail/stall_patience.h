#pragma once

#include <chrono>

namespace muster::detail {

/// How long somebody in a `fit()` may be at one thing before that is logged: 10 s. Tests set a shorter one,
/// for the wrappers built after that; the process's, thread-safe.
std::chrono::milliseconds stallPatience();
void setStallPatience(std::chrono::milliseconds patience);

}  // namespace muster::detail
