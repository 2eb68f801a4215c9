#pragma once

#include <string>

#include "muster/core/device/context.h"

namespace muster {

/// Why `device`, which is available, does not have `mode`, as "the processor has neither AVX-512 BF16 nor
/// AMX";
/// "" if it has it.
///
/// In BFloat16, a CPU rounds the factors of convolutions and dense layers to the nearest, and adds in
/// float32. Recurrent layers and attention multiply in float32 there.
/// @throws DeviceUnavailable if the device is not available here.
std::string whyNoMathMode(Device device, MathMode mode);

}  // namespace muster
