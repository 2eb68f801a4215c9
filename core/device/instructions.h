#pragma once

#include <string_view>

namespace muster {

/// The widest vector instructions that the CPU kernels use on this machine, "AVX-512" or "AVX2"; "" for the
/// architecture's baseline.
std::string_view vectorInstructions();

}  // namespace muster
