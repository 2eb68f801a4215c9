#include "muster/core/backend/cuda/kernels/low_rank.h"

#include <cuda_runtime.h>

#include "muster/core/backend/cuda/kernels/reduce.cuh"
#include "muster/core/ops/delta_coding_rules.h"

namespace muster::cuda {
namespace {

template <typename T>
struct Matrix {
  coding::Move<T> move;
  const T* meanP;
  const T* meanQ;
  T* p;
  T* q;
  std::int64_t offset, rows, columns, rank;

  __device__ double at(std::int64_t row, std::int64_t column) const {
    return move.at(offset + row * columns + column);
  }
};

/// The sum over a block; all its threads get the result.
__device__ double totalOverBlock(double value) {
  __shared__ double total;
  double sums[1] = {value};
  sumOverBlock(sums);
  if (threadIdx.x == 0) total = sums[0];
  __syncthreads();
  const double result = total;
  __syncthreads();
  return result;
}

/// One block per row.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) projectKernel(Matrix<T> m) {
  for (std::int64_t i = blockIdx.x; i < m.rows; i += gridDim.x)
    for (std::int64_t k = 0; k < m.rank; ++k) {
      double sum = 0;
      for (std::int64_t c = threadIdx.x; c < m.columns; c += kBlockThreads)
        sum += m.at(i, c) * coding::started(static_cast<double>(m.meanQ[c * m.rank + k]), c, k);
      sum = totalOverBlock(sum);
      if (threadIdx.x == 0) m.p[i * m.rank + k] = static_cast<T>(sum);
    }
}

/// Runs in one block.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) orthonormaliseKernel(Matrix<T> m) {
  const auto dot = [&](std::int64_t j, std::int64_t k) {
    double sum = 0;
    for (std::int64_t i = threadIdx.x; i < m.rows; i += kBlockThreads)
      sum += static_cast<double>(m.p[i * m.rank + j]) * static_cast<double>(m.p[i * m.rank + k]);
    return totalOverBlock(sum);
  };
  for (std::int64_t k = 0; k < m.rank; ++k) {  // each thread updates its own rows
    for (std::int64_t i = threadIdx.x; i < m.rows; i += kBlockThreads)
      m.p[i * m.rank + k] = m.meanP[i * m.rank + k];
    const double before = dot(k, k);
    for (std::int64_t j = 0; j < k; ++j) {
      const double along = dot(j, k);
      for (std::int64_t i = threadIdx.x; i < m.rows; i += kBlockThreads)
        m.p[i * m.rank + k] = static_cast<T>(m.p[i * m.rank + k] - along * m.p[i * m.rank + j]);
    }
    const double scale = coding::inverseLength(before, dot(k, k));
    for (std::int64_t i = threadIdx.x; i < m.rows; i += kBlockThreads)
      m.p[i * m.rank + k] = static_cast<T>(scale * m.p[i * m.rank + k]);
  }
}

/// One block per column.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) transposedProductKernel(Matrix<T> m) {
  for (std::int64_t c = blockIdx.x; c < m.columns; c += gridDim.x)
    for (std::int64_t k = 0; k < m.rank; ++k) {
      double sum = 0;
      for (std::int64_t i = threadIdx.x; i < m.rows; i += kBlockThreads)
        sum += m.at(i, c) * static_cast<double>(m.p[i * m.rank + k]);
      sum = totalOverBlock(sum);
      if (threadIdx.x == 0) m.q[c * m.rank + k] = static_cast<T>(sum);
    }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads) sendKernel(Matrix<T> m) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
       n < m.rows * m.columns; n += step) {
    const std::int64_t i = n / m.columns, c = n % m.columns;
    m.move.send(m.offset + n, m.at(i, c), coding::product(m.p + i * m.rank, m.q + c * m.rank, m.rank));
  }
}

template <typename T>
Matrix<T> matrixOf(const LowRankCall& call) {
  const std::int64_t right = call.offset + call.rows * call.rank;
  const auto* const means = static_cast<const T*>(call.means);
  auto* const factors = static_cast<T*>(call.factors);
  return {{static_cast<const T*>(call.values), static_cast<T*>(call.sent), static_cast<T*>(call.residual),
           call.remember},
          means + call.offset,
          means + right,
          factors + call.offset,
          factors + right,
          call.offset,
          call.rows,
          call.columns,
          call.rank};
}

template <typename T>
cudaError_t project(const LowRankCall& call, cudaStream_t stream) {
  projectKernel<<<blocksFor(call.rows, 1), kBlockThreads, 0, stream>>>(matrixOf<T>(call));
  return cudaGetLastError();
}

template <typename T>
cudaError_t code(const LowRankCall& call, cudaStream_t stream) {
  const auto m = matrixOf<T>(call);
  orthonormaliseKernel<<<1, kBlockThreads, 0, stream>>>(m);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  transposedProductKernel<<<blocksFor(call.columns, 1), kBlockThreads, 0, stream>>>(m);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  sendKernel<<<blocksFor(call.rows * call.columns), kBlockThreads, 0, stream>>>(m);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launchProjectDelta(const LowRankCall& call, cudaStream_t stream) {
  return call.isDouble ? project<double>(call, stream) : project<float>(call, stream);
}

cudaError_t launchCodeLowRank(const LowRankCall& call, cudaStream_t stream) {
  return call.isDouble ? code<double>(call, stream) : code<float>(call, stream);
}

}  // namespace muster::cuda
