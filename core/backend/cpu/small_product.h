#pragma once

#include <cstddef>
#include <cstdint>

// For a file compiled for AVX-512: nothing here may include inline library functions, because the linker
// could use such a copy in the whole program.

namespace muster::cpu {

/// Bytes of scratch memory that `smallProductAvx512` needs.
inline constexpr std::size_t smallProductScratch(std::int64_t in) {
  return static_cast<std::size_t>(in) * 32 * sizeof(float);
}

/// y = x weight^T + bias in row-major layout: x [batch, in], weight [out, in], bias [out] or null, y [batch,
/// out]. Each sum starts with the bias and runs over `in` in order. Faster than dnnl_sgemm for small products
/// (dnnl_sgemm spends most of its time there on choosing and packing), see the README.
/// @param scratch  aligned to 64 bytes.
void smallProductAvx512(std::int64_t batch, std::int64_t in, std::int64_t out, const float* x,
                        const float* weight, const float* bias, float* y, float* scratch);

}  // namespace muster::cpu
