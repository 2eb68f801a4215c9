#include "muster/core/backend/cpu/batch_norm_loops.h"

namespace muster::cpu::norm {

const KernelSet& avx512Kernels() {
  return kKernels;
}

}  // namespace muster::cpu::norm
