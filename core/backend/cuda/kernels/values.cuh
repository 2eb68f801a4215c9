#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

// Conversion between stored elements and the numbers used in computations.

namespace muster::cuda {

__device__ inline float valueOf(float x) {
  return x;
}
__device__ inline float valueOf(std::uint8_t x) {
  return __fdiv_rn(static_cast<float>(x), 255.0f);
}
__device__ inline float valueOf(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

template <typename T>
__device__ T rounded(float x) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __float2bfloat16_rn(x);
  else
    return x;
}

}  // namespace muster::cuda
