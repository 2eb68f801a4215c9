#pragma once

#include "muster/core/tensor/tensor.h"

namespace muster::cpu {

/// Zeros the padding of a float32 tensor's layout; does nothing for layouts without padding.
void zeroPadding(Tensor& tensor);

}  // namespace muster::cpu
