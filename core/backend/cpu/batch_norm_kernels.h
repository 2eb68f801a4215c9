#pragma once

#include <cstdint>

// For files compiled for one instruction set each: nothing here may include inline library functions, because
// the linker could use such a copy in the whole program.

namespace muster::cpu::norm {

/// Contiguous memory that one call normalises: [positions, lanes] with a channel in each lane; in kernels of
/// runs, `positions` values of one channel.
struct Unit {
  std::int64_t positions, lanes;
};

/// y = (x - mean) * scale + shift, each constant [lanes].
struct Affine {
  const float *mean, *scale, *shift;
};

/// gradX = a * g + (b * (x - mean) + c), each constant [lanes]; g is 0 where a ReLU output was 0.
struct GradientAffine {
  Affine forward;
  const float *a, *b, *c;
};

/// Loops over one unit. [activation: 0 none, 1 ReLU]
struct Kernels {
  /// Adds the sums of x and of x^2, [lanes] each.
  void (*sums)(const Unit&, const float* x, double* sums, double* squares);
  void (*normalise[2])(const Unit&, const Affine&, const float* x, float* y);
  /// Adds the sums of g and of g * (x - mean).
  void (*gradientSums[2])(const Unit&, const Affine&, const float* x, const float* gradY, double* sums,
                          double* products);
  void (*gradient[2])(const Unit&, const GradientAffine&, const float* x, const float* gradY, float* gradX);
};

/// The loops for one instruction set.
struct KernelSet {
  Kernels lanes, runs;
};

const KernelSet& baselineKernels();
const KernelSet& avx2Kernels();
const KernelSet& avx512Kernels();

}  // namespace muster::cpu::norm
