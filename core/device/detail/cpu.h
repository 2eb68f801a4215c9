#pragma once

#include <string>

#include "muster/core/device/context.h"

namespace muster::cpu {

/// Why bf16 products are not available on this processor or in this process; "" if they are.
std::string whyNoBFloat16();
/// Sets the math mode of this state's context. Call it before any operation is planned.
void multiplyIn(MathMode mode, muster::detail::BackendState& state);

}  // namespace muster::cpu
