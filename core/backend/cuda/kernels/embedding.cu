#include "muster/core/backend/cuda/kernels/embedding.h"

#include "muster/core/backend/cuda/kernels/for_each.cuh"

// Positions are sorted by the table row of their index, one byte at a time, stably. A block sorts one tile of
// positions; the counts of each byte in each tile give every block its place to write. Atomics only count
// integers.

namespace muster::cuda {
namespace {

constexpr int kWarps = kBlockThreads / 32, kRounds = kSortTile / kBlockThreads;
static_assert(kSortDigits == 256 && kBlockThreads == 256);  // one thread for each value of a byte

/// The positions to sort and their rows: first the call's indices, then the result for the previous byte.
struct Unsorted {
  EmbeddingCall call;
  const std::uint32_t *rows, *places;  // null: use the call's indices
  int shift;                           // bit offset of the current byte

  /// The row; the vocabulary size, which is past all rows, if the position is masked.
  __device__ std::uint32_t row(std::int64_t i) const {
    if (rows) return rows[i];
    const std::int64_t index = call.indices[i];
    const bool counts = index >= 0 && index < call.vocabulary && (!call.mask || call.mask[i] != 0.0f);
    return static_cast<std::uint32_t>(counts ? index : call.vocabulary);
  }
  __device__ std::uint32_t place(std::int64_t i) const {
    return places ? places[i] : static_cast<std::uint32_t>(i);
  }
  __device__ unsigned digit(std::uint32_t row) const { return row >> shift & (kSortDigits - 1); }
};

/// Counts each tile's digits. @param counts  [tiles, digits].
__global__ void __launch_bounds__(kBlockThreads) countDigits(Unsorted from, std::uint32_t* counts) {
  __shared__ unsigned found[kSortDigits];
  found[threadIdx.x] = 0;
  __syncthreads();
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t i = blockIdx.x * kSortTile + round * kBlockThreads + threadIdx.x;
    if (i < from.call.count) atomicAdd(&found[from.digit(from.row(i))], 1u);
  }
  __syncthreads();
  counts[blockIdx.x * kSortDigits + threadIdx.x] = found[threadIdx.x];
}

/// Where this tile writes its positions of digit threadIdx.x: after all smaller digits, and after this digit
/// in earlier tiles.
__device__ unsigned beginOfDigit(const std::uint32_t* counts) {
  __shared__ unsigned upTo[kSortDigits];
  unsigned before = 0, all = 0;
#pragma unroll 8  // loads several counts before adding
  for (unsigned tile = 0; tile < gridDim.x; ++tile) {
    const unsigned count = counts[tile * kSortDigits + threadIdx.x];
    before += tile < blockIdx.x ? count : 0;
    all += count;
  }
  upTo[threadIdx.x] = all;
  __syncthreads();
  for (unsigned offset = 1; offset < kSortDigits; offset *= 2) {
    const unsigned other = threadIdx.x >= offset ? upTo[threadIdx.x - offset] : 0;
    __syncthreads();
    upTo[threadIdx.x] += other;
    __syncthreads();
  }
  return upTo[threadIdx.x] - all + before;
}

/// A warp takes adjacent positions of the tile, 32 at a time, so the order of warps, rounds and lanes is that
/// of the positions.
__global__ void __launch_bounds__(kBlockThreads)
    sortByDigit(Unsorted from, const std::uint32_t* counts, std::uint32_t* rows, std::uint32_t* places) {
  __shared__ unsigned next[kWarps][kSortDigits];  // where a warp writes its next position of a digit
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::int64_t first = blockIdx.x * kSortTile + warp * (32 * kRounds) + lane;
  unsigned begin = beginOfDigit(counts);
  for (int w = 0; w < kWarps; ++w) next[w][threadIdx.x] = 0;
  __syncthreads();
  std::uint32_t row[kRounds];
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t i = first + 32 * round;
    row[round] = i < from.call.count ? from.row(i) : 0;
    if (i < from.call.count) atomicAdd(&next[warp][from.digit(row[round])], 1u);
  }
  __syncthreads();
  for (int w = 0; w < kWarps; ++w) {
    const unsigned count = next[w][threadIdx.x];
    next[w][threadIdx.x] = begin;
    begin += count;
  }
  __syncthreads();
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t i = first + 32 * round;
    const bool there = i < from.call.count;
    const unsigned digit = from.digit(row[round]);
    const unsigned alike = __match_any_sync(0xffffffffu, there ? digit : static_cast<unsigned>(kSortDigits));
    const unsigned before = static_cast<unsigned>(__popc(alike & ((1u << lane) - 1)));
    const unsigned to = there ? next[warp][digit] + before : 0;
    __syncwarp();  // all lanes have read
    if (there && before == 0) next[warp][digit] += static_cast<unsigned>(__popc(alike));
    __syncwarp();
    if (!there) continue;
    rows[to] = row[round];
    places[to] = from.place(i);
  }
}

/// The thread at a row's first position adds the gradients of all the row's positions in order, several loads
/// at a time.
cudaError_t addSorted(const EmbeddingCall& c, const std::uint32_t* rows, const std::uint32_t* places,
                      const float* gradY, float* gradTable, cudaStream_t stream) {
  constexpr std::uint32_t kAtOnce = 16;
  const Extent features(c.features);
  const auto count = static_cast<std::uint32_t>(c.count);
  return forEachPlace(c.count * c.features, c.count * c.features, stream, [=] __device__(auto i) {
    const auto first = static_cast<std::uint32_t>(i / features);
    const std::uint32_t row = rows[first];
    if (row >= c.vocabulary || (first > 0 && rows[first - 1] == row)) return;
    const auto feature = static_cast<std::int64_t>(i % features);
    float* const to = gradTable + row * c.features + feature;
    float sum = *to;
    for (std::uint32_t next = first;; next += kAtOnce) {
      std::uint32_t mine = 0;  // number of next positions that belong to this row
      float values[kAtOnce];
#pragma unroll
      for (std::uint32_t u = 0; u < kAtOnce; ++u) mine += next + u < count && rows[next + u] == row;
#pragma unroll
      for (std::uint32_t u = 0; u < kAtOnce; ++u)
        if (u < mine) values[u] = gradY[places[next + u] * c.features + feature];
#pragma unroll
      for (std::uint32_t u = 0; u < kAtOnce; ++u)
        if (u < mine) sum += values[u];
      if (mine < kAtOnce) break;
    }
    *to = sum;
  });
}

cudaError_t addSome(const EmbeddingCall& c, const float* gradY, float* gradTable, std::uint32_t* memory,
                    cudaStream_t stream) {
  const unsigned tiles = blocksForAll(c.count, kSortTile);
  std::uint32_t* const counts = memory + 4 * kMostSorted;
  Unsorted from{c, nullptr, nullptr, 0};
  for (int turn = 0; turn == 0 || c.vocabulary >> from.shift > 0; ++turn, from.shift += 8) {
    std::uint32_t* const rows = memory + turn % 2 * 2 * kMostSorted;
    std::uint32_t* const places = rows + kMostSorted;
    countDigits<<<tiles, kBlockThreads, 0, stream>>>(from, counts);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
    sortByDigit<<<tiles, kBlockThreads, 0, stream>>>(from, counts, rows, places);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
    from.rows = rows;
    from.places = places;
  }
  return addSorted(c, from.rows, from.places, gradY, gradTable, stream);
}

}  // namespace

cudaError_t launchEmbeddingBackward(const EmbeddingCall& call, const float* gradY, float* gradTable,
                                    void* memory, cudaStream_t stream) {
  const auto bytes = static_cast<std::size_t>(call.vocabulary * call.features) * sizeof(float);
  if (bytes == 0) return cudaSuccess;
  cudaError_t error = cudaMemsetAsync(gradTable, 0, bytes, stream);
  for (std::int64_t begin = 0; begin < call.count && error == cudaSuccess; begin += kMostSorted) {
    EmbeddingCall some = call;
    some.count = call.count - begin < kMostSorted ? call.count - begin : kMostSorted;
    some.indices += begin;
    if (some.mask) some.mask += begin;
    error =
        addSome(some, gradY + begin * call.features, gradTable, static_cast<std::uint32_t*>(memory), stream);
  }
  return error;
}

}  // namespace muster::cuda
