#include "muster/core/backend/cpu/pool2d_loops.h"

namespace muster::cpu::pool {

const Kernels& baselineKernels() {
  return kKernels;
}

}  // namespace muster::cpu::pool
