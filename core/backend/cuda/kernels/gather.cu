#include "muster/core/backend/cuda/kernels/gather.h"

#include <cuda_runtime.h>

namespace muster::cuda {
namespace {

__device__ void setOnes(std::uint8_t& piece) {
  piece = 0xffu;
}
__device__ void setOnes(std::uint32_t& piece) {
  piece = 0xffffffffu;
}
__device__ void setOnes(uint4& piece) {
  piece = {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu};
}

/// @param pieces  of type T in a row.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    gatherKernel(const T* source, std::int64_t sourceRows, const std::int64_t* rows, std::int64_t count,
                 std::int64_t pieces, T* target) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
       i < count * pieces; i += step) {
    const std::int64_t row = rows[i / pieces];
    T piece;
    if (row >= 0 && row < sourceRows)
      piece = source[row * pieces + i % pieces];
    else
      setOnes(piece);
    target[i] = piece;
  }
}

template <typename T>
bool divides(const void* source, const void* target, std::int64_t rowBytes) {
  constexpr auto kSize = sizeof(T);
  return reinterpret_cast<std::uintptr_t>(source) % kSize == 0 &&
         reinterpret_cast<std::uintptr_t>(target) % kSize == 0 &&
         rowBytes % static_cast<std::int64_t>(kSize) == 0;
}

template <typename T>
cudaError_t launch(const void* source, std::int64_t sourceRows, const std::int64_t* rows, std::int64_t count,
                   std::int64_t rowBytes, void* target, cudaStream_t stream) {
  const std::int64_t pieces = rowBytes / static_cast<std::int64_t>(sizeof(T));
  gatherKernel<T><<<blocksFor(count * pieces), kBlockThreads, 0, stream>>>(
      static_cast<const T*>(source), sourceRows, rows, count, pieces, static_cast<T*>(target));
  return cudaGetLastError();
}

}  // namespace

cudaError_t launchGather(const void* source, std::int64_t sourceRows, const std::int64_t* rows,
                         std::int64_t count, std::int64_t rowBytes, void* target, cudaStream_t stream) {
  if (count <= 0 || rowBytes <= 0) return cudaSuccess;
  if (divides<uint4>(source, target, rowBytes))
    return launch<uint4>(source, sourceRows, rows, count, rowBytes, target, stream);
  if (divides<std::uint32_t>(source, target, rowBytes))
    return launch<std::uint32_t>(source, sourceRows, rows, count, rowBytes, target, stream);
  return launch<std::uint8_t>(source, sourceRows, rows, count, rowBytes, target, stream);
}

}  // namespace muster::cuda
