#include "muster/core/backend/cpu/conv/direct_conv2d_tiles.h"

namespace muster::cpu::direct {

const Kernels* avx2Kernels(std::int64_t kernelWidth) {
  return kernelsFor<8>(kernelWidth);
}

}  // namespace muster::cpu::direct
