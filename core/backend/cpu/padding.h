#pragma once

#include "muster/core/tensor/tensor.h"

namespace muster::cpu {

/// Writes zeros into what a float32 tensor's layout pads; nothing for layouts without padding.
void zeroPadding(Tensor& tensor);

}  // namespace muster::cpu
