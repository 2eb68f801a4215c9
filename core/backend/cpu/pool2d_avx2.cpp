#include "muster/core/backend/cpu/pool2d_loops.h"

namespace muster::cpu::pool {

const Kernels& avx2Kernels() {
  return kKernels;
}

}  // namespace muster::cpu::pool
