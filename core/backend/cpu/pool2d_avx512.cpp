#include "muster/core/backend/cpu/pool2d_loops.h"

namespace muster::cpu::pool {

const Kernels& avx512Kernels() {
  return kKernels;
}

}  // namespace muster::cpu::pool
