#include <immintrin.h>

#include "muster/core/backend/cpu/conv/direct_conv2d_tiles.h"

namespace muster::cpu::direct {
namespace {

/// Lanes are pairs of bf16; both products are added to the sum.
struct PairProducts {
  static __m512 add(__m512 sum, __m512 a, __m512 b) {
#ifdef __clang__
    asm("" : "+v"(a));  // without it Clang 16 crashes on the conversion of a broadcast float
#endif
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

}  // namespace

const Kernels* bfloat16Kernels(std::int64_t kernelWidth) {
  return kernelsFor<16, PairProducts>(kernelWidth);
}

void packBFloat16(const float* first, const float* second, float* to, std::int64_t elements) {
  alignas(64) static constexpr short kInterleaved[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                         21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                         11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i order = _mm512_load_si512(kInterleaved);
  for (std::int64_t i = 0; i < elements; i += 16) {
    const __m512 upper = second ? _mm512_loadu_ps(second + i) : _mm512_setzero_ps();
    const __m512bh both = _mm512_cvtne2ps_pbh(upper, _mm512_loadu_ps(first + i));
    _mm512_storeu_si512(to + i, _mm512_permutexvar_epi16(order, reinterpret_cast<__m512i>(both)));
  }
}

}  // namespace muster::cpu::direct
