#pragma once

#include <string>

#include "muster/core/device/context.h"

namespace muster::cpu {

/// Why this processor or process has no products of factors in bf16; "" if it has.
std::string whyNoBFloat16();
/// The operations of this state's context multiply so from now on; before anything is planned.
void multiplyIn(MathMode mode, muster::detail::BackendState& state);

}  // namespace muster::cpu
