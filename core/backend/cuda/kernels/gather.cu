#include "muster/core/backend/cuda/kernels/gather.h"

#include "muster/core/backend/cuda/kernels/for_each.cuh"

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

template <typename T>
bool divides(const void* source, const void* target, std::int64_t rowBytes) {
  constexpr auto kSize = sizeof(T);
  return reinterpret_cast<std::uintptr_t>(source) % kSize == 0 &&
         reinterpret_cast<std::uintptr_t>(target) % kSize == 0 &&
         rowBytes % static_cast<std::int64_t>(kSize) == 0;
}

/// Copies in pieces of type T.
template <typename T>
cudaError_t launch(const void* source, std::int64_t sourceRows, const std::int64_t* rows, std::int64_t count,
                   std::int64_t rowBytes, void* target, cudaStream_t stream) {
  const std::int64_t perRow = rowBytes / static_cast<std::int64_t>(sizeof(T));
  const Extent pieces(perRow);
  const auto* const from = static_cast<const T*>(source);
  auto* const to = static_cast<T*>(target);
  return forEachPlace(count * perRow, count * perRow, stream, [=] __device__(auto i) {
    const auto place = i / pieces;
    const std::int64_t row = rows[place];
    T piece;
    if (row >= 0 && row < sourceRows)
      piece = from[row * perRow + (i - place * pieces)];  // 64-bit: a resident data set may be large
    else
      setOnes(piece);
    to[i] = piece;
  });
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
