#pragma once

#include <cstdint>

// Included by files that are compiled for one instruction set each: nothing here may bring in inline
// functions of the library, which the linker could then hand to the whole program.

namespace muster::cpu::norm {

/// A piece of contiguous memory that is normalised by one call: [positions, lanes], a channel each lane; or
/// in kernels of runs `positions` values of one channel.
struct Unit {
  std::int64_t positions, lanes;
};

/// What x becomes: (x - mean) * scale + shift, each of [lanes].
struct Affine {
  const float *mean, *scale, *shift;
};

/// What a gradient becomes: a * g + (b * (x - mean) + c), each of [lanes]; g is zero where a ReLU has let
/// nothing through.
struct GradientAffine {
  Affine forward;
  const float *a, *b, *c;
};

/// Loops for one unit. [activation: 0 none, 1 ReLU]
struct Kernels {
  /// Adds the sums of x and of x^2, [lanes] each.
  void (*sums)(const Unit&, const float* x, double* sums, double* squares);
  void (*normalise[2])(const Unit&, const Affine&, const float* x, float* y);
  /// Adds the sums of g and of g * (x - mean).
  void (*gradientSums[2])(const Unit&, const Affine&, const float* x, const float* gradY, double* sums,
                          double* products);
  void (*gradient[2])(const Unit&, const GradientAffine&, const float* x, const float* gradY, float* gradX);
};

/// The loops compiled for one instruction set.
struct KernelSet {
  Kernels lanes, runs;
};

const KernelSet& baselineKernels();
const KernelSet& avx2Kernels();
const KernelSet& avx512Kernels();

}  // namespace muster::cpu::norm
