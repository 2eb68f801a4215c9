#include "muster/core/backend/cpu/conv/winograd_loops.h"

namespace muster::cpu::winograd {

const Kernels& avx2Kernels() {
  static constexpr Kernels kKernels = KernelsOf<8>::kernels("Winograd, AVX2");
  return kKernels;
}

}  // namespace muster::cpu::winograd
