#pragma once

#include <cstdint>

#include "muster/core/tensor/tensor.h"

namespace muster {

/// The largest magnitude among elements [begin, end): infinity or NaN if one of them is that, 0 if there is
/// none.
/// @param x  float32 or float64, row-major, on the CPU.
/// @throws InvalidArgument for another type or layout, or a range outside it; DeviceUnavailable on a GPU.
double largestMagnitude(const Tensor& x, std::int64_t begin, std::int64_t end);

namespace cpu {
double largestMagnitude(const Tensor& x, std::int64_t begin, std::int64_t end);
}  // namespace cpu

}  // namespace muster
