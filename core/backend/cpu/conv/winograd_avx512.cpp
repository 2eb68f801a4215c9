#include "muster/core/backend/cpu/conv/winograd_loops.h"

namespace muster::cpu::winograd {

const Kernels& avx512Kernels() {
  static constexpr Kernels kKernels = KernelsOf<16>::kernels("Winograd, AVX-512");
  return kKernels;
}

}  // namespace muster::cpu::winograd
