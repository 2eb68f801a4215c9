#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// Terms of a linear combination; those of factor 0 are left out.
struct TermTable {
  static constexpr int kMost = 40;
  const void* at[kMost];
  double factor[kMost];
  bool isDouble[kMost];
  int count;
};

/// Writes elements [begin, end) of `out`, float64 if `outIsDouble`, else float32.
cudaError_t launchLinearCombination(const TermTable& terms, void* out, bool outIsDouble, std::int64_t begin,
                                    std::int64_t end, cudaStream_t stream);

/// Float32, or float64 if `isDouble`.
struct RealValues {
  const void* at = nullptr;
  bool isDouble = false;
};

/// *result = sum (a - origin) (b - origin) over [begin, end); `origin` may be null: 0.
cudaError_t launchInnerProduct(RealValues a, RealValues b, RealValues origin, std::int64_t begin,
                               std::int64_t end, double* result, const PartialSums& partial,
                               cudaStream_t stream);

}  // namespace muster::cuda
