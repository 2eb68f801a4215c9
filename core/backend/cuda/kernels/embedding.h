#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/core/backend/cuda/kernels/sequence.h"

namespace muster::cuda {

/// Number of indices sorted at a time.
inline constexpr std::int64_t kMostSorted = std::int64_t{1} << 18;
/// Bytes of memory needed: rows and positions twice, and the count of each digit in each tile.
inline constexpr std::int64_t kSortTile = 8 * kBlockThreads, kSortDigits = kBlockThreads;
inline constexpr std::size_t kSortBytes = (4 * kMostSorted + kMostSorted / kSortTile * kSortDigits) * 4;

inline constexpr std::int64_t kMostVocabulary =
    0x7fffffff;  // row numbers, and one past the last row, fit 32 bits

/// Sums each table row's gradients in the order of the indices. The vocabulary is at most kMostVocabulary.
/// @param memory  kSortBytes bytes, aligned for 4-byte numbers.
cudaError_t launchEmbeddingBackward(const EmbeddingCall& call, const float* gradY, float* gradTable,
                                    void* memory, cudaStream_t stream);

}  // namespace muster::cuda
