#include "muster/core/backend/cuda/kernels/delta_coding.h"

#include <cuda_runtime.h>

#include "muster/core/backend/cuda/kernels/reduce.cuh"
#include "muster/core/ops/delta_coding_rules.h"

namespace muster::cuda {
namespace {

constexpr unsigned kSelectThreads = 1024;

static_assert(coding::kChunk == kBlockThreads);

struct Bf16 {
  __device__ float operator()(float v, float) const { return coding::bf16(v); }
};
struct Int8 {
  __device__ float operator()(float v, float largest) const { return coding::int8(v, largest); }
};
struct E3M0 {
  __device__ float operator()(float v, float largest) const { return coding::e3m0(v, largest); }
};

__device__ unsigned blockMax(unsigned value) {
  __shared__ unsigned warps[kBlockThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2)
    value = max(value, __shfl_xor_sync(0xffffffffu, value, offset));
  __syncthreads();  // threads may still read `warps` for the previous chunk
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  unsigned largest = 0;
  for (const unsigned warp : warps) largest = max(largest, warp);
  return largest;
}

/// One thread per element, one block per chunk.
template <typename T, typename Rule>
__global__ void __launch_bounds__(kBlockThreads)
    chunkKernel(coding::Move<T> move, std::int64_t begin, std::int64_t end, Rule rule) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t at = begin + static_cast<std::int64_t>(blockIdx.x) * kBlockThreads; at < end;
       at += step) {
    const std::int64_t i = at + threadIdx.x;
    const double v = i < end ? move.at(i) : 0.0;
    const auto single = static_cast<float>(v);
    const float largest = __uint_as_float(blockMax(coding::magnitude(single)));
    if (i < end) move.send(i, v, rule(single, largest));
  }
}

/// Runs in one block: counts digits, selects the threshold, then sends; ties are sent in index order.
template <typename T>
__global__ void __launch_bounds__(kSelectThreads)
    largestKernel(coding::Move<T> move, std::int64_t begin, std::int64_t end, std::int64_t largest) {
  __shared__ unsigned long long counts[coding::kBins];
  __shared__ coding::Threshold threshold;
  __shared__ unsigned ties[kSelectThreads / 32];
  const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  if (thread == 0) threshold = {.left = largest};
  for (int digit = 0; digit < coding::kDigits; ++digit) {
    for (unsigned bin = thread; bin < coding::kBins; bin += kSelectThreads) counts[bin] = 0;
    __syncthreads();
    for (std::int64_t i = begin + thread; i < end; i += kSelectThreads) {
      const std::uint32_t m = coding::magnitude(static_cast<float>(move.at(i)));
      if (threshold.agrees(m)) atomicAdd(counts + coding::digitOf(m, digit), 1ull);
    }
    __syncthreads();
    if (thread == 0) threshold.take(counts, digit);
    __syncthreads();
  }
  std::int64_t left = threshold.left;  // ties left to send, the same in all threads
  for (std::int64_t at = begin; at < end; at += kSelectThreads) {
    const std::int64_t i = at + thread;
    const double v = i < end ? move.at(i) : 0.0;
    const std::uint32_t m = coding::magnitude(static_cast<float>(v));
    const bool tied = i < end && threshold.agrees(m);
    const unsigned votes = __ballot_sync(0xffffffffu, tied);
    if (lane == 0) ties[warp] = static_cast<unsigned>(__popc(votes));
    __syncthreads();
    std::int64_t before = __popc(votes & ((1u << lane) - 1)), all = 0;
    for (unsigned w = 0; w < kSelectThreads / 32; ++w) {
      if (w < warp) before += ties[w];
      all += ties[w];
    }
    if (i < end) move.send(i, v, (tied && before < left) || threshold.above(m) ? v : 0.0);
    left = left > all ? left - all : 0;
    __syncthreads();  // the next iteration overwrites `ties`
  }
}

template <typename T>
coding::Move<T> moveOf(const CodingCall& call) {
  return {static_cast<const T*>(call.values), static_cast<T*>(call.sent), static_cast<T*>(call.residual),
          call.remember};
}

template <typename Rule>
cudaError_t launchChunks(const CodingCall& call, Rule rule, cudaStream_t stream) {
  const int blocks = blocksFor(call.end - call.begin);
  if (call.isDouble)
    chunkKernel<<<blocks, kBlockThreads, 0, stream>>>(moveOf<double>(call), call.begin, call.end, rule);
  else
    chunkKernel<<<blocks, kBlockThreads, 0, stream>>>(moveOf<float>(call), call.begin, call.end, rule);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launchCodeBf16(const CodingCall& call, cudaStream_t stream) {
  return launchChunks(call, Bf16{}, stream);
}

cudaError_t launchCodeInt8(const CodingCall& call, cudaStream_t stream) {
  return launchChunks(call, Int8{}, stream);
}

cudaError_t launchCodeE3M0(const CodingCall& call, cudaStream_t stream) {
  return launchChunks(call, E3M0{}, stream);
}

cudaError_t launchCodeLargest(const CodingCall& call, std::int64_t largest, cudaStream_t stream) {
  if (call.isDouble)
    largestKernel<<<1, kSelectThreads, 0, stream>>>(moveOf<double>(call), call.begin, call.end, largest);
  else
    largestKernel<<<1, kSelectThreads, 0, stream>>>(moveOf<float>(call), call.begin, call.end, largest);
  return cudaGetLastError();
}

}  // namespace muster::cuda
