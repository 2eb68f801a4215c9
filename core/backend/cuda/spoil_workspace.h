#pragma once

#include "muster/core/device/context.h"

namespace muster::cuda {

/// For tests: fills the memory that the operations of a context share with NaN, enqueued on its compute
/// stream, so that an operation that reads what it has not written gives NaN.
void spoilWorkspace(Context& context);

}  // namespace muster::cuda
