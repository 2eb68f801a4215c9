#pragma once

#include <cstdint>

// For files compiled for one instruction set each: nothing here may include inline library functions, because
// the linker could use such a copy in the whole program.

namespace muster::cpu::pool {

/// One plane [H, W, lanes]; all lanes are pooled alike. Sizes of kernel, stride and padding: rows, columns.
struct Plane {
  std::int64_t height, width, outHeight, outWidth, lanes;
  std::int64_t kernel[2], stride[2], padding[2];
};

/// The loops for one plane. `winners` holds for each output the position in the kernel, row by row, of the
/// largest pixel.
template <typename Index>
struct MaxKernels {
  void (*forward)(const Plane& p, const float* x, float* y, Index* winners);
  /// gradX must be zero initially.
  void (*backward)(const Plane& p, const float* gradY, const Index* winners, float* gradX);
};

struct AverageKernels {
  void (*forward)(const Plane& p, const float* x, float* y);
  /// gradX must be zero initially.
  void (*backward)(const Plane& p, const float* gradY, float* gradX);
};

/// The loops for one instruction set.
struct Kernels {
  MaxKernels<std::uint8_t> maxOfFew;  ///< kernels of at most 256 positions
  MaxKernels<std::int32_t> maxOfMany;
  AverageKernels average;
};

const Kernels& baselineKernels();
const Kernels& avx2Kernels();
const Kernels& avx512Kernels();
/// The kernels for this machine; see `instructionSet`.
const Kernels& kernels();

}  // namespace muster::cpu::pool
