#pragma once

#include <array>
#include <cstdint>

#include "muster/core/backend/cuda/kernels/channel_shape.h"
#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

struct DropoutRule {
  std::uint64_t threshold;  // an element whose random word is smaller becomes zero
  float scale;              // of the remaining elements
  std::array<std::uint32_t, 2> key;
  std::int64_t rows, features;
  std::int64_t epoch, firstExample;
  const std::int64_t* position;  // {epoch, first example} on the device; null: the values above
};
cudaError_t launchDropout(const float* x, float* y, const DropoutRule& rule, cudaStream_t stream);

/// y = y + a x, in float64.
template <typename T>
cudaError_t launchAxpy(double a, const T* x, T* y, std::int64_t n, cudaStream_t stream);

inline constexpr int kMostInputs = 128;
template <typename T>
struct Inputs {
  const T* at[kMostInputs];
  int count;
};
template <typename T>
cudaError_t launchSum(const Inputs<T>& inputs, T* out, std::int64_t n, cudaStream_t stream);

enum class Fold { Add, Subtract, Product, Max };
/// y = factor (x[0] o x[1] o ...), in the order of the inputs; y may be the memory of x[0].
cudaError_t launchFold(Fold fold, const Inputs<float>& x, float factor, float* y, std::int64_t n,
                       cudaStream_t stream);
/// y = x times each of the inputs but `skipped`; y may be x.
cudaError_t launchTimesOthers(const Inputs<float>& inputs, int skipped, const float* x, float* y,
                              std::int64_t n, cudaStream_t stream);
/// y = x where `mine` is the largest, else 0: greater than inputs [0, own) and not less than inputs from
/// `own` on, which may include `mine`. y may be x.
cudaError_t launchWhereLargest(const Inputs<float>& inputs, int own, const float* mine, const float* x,
                               float* y, std::int64_t n, cudaStream_t stream);
/// y = factor x; x and y may be the same memory.
cudaError_t launchScale(float factor, const float* x, float* y, std::int64_t n, cudaStream_t stream);
/// Copies `outer` runs of `run` elements, at distances rowX and rowY.
cudaError_t launchCopyRuns(const float* x, std::int64_t rowX, float* y, std::int64_t rowY, std::int64_t outer,
                           std::int64_t run, cudaStream_t stream);
/// y[r, c] = x[r, c] where x has that element, else 0; row-major.
struct MatrixSize {
  std::int64_t rows, columns;
};
cudaError_t launchResize(const float* x, const MatrixSize& from, float* y, const MatrixSize& to,
                         cudaStream_t stream);
/// Converts bytes to integers.
cudaError_t launchWiden(const std::uint8_t* x, std::int64_t* y, std::int64_t n, cudaStream_t stream);

cudaError_t launchClamp(float* x, float limit, std::int64_t n, cudaStream_t stream);

/// Adds bias[c] (bias may be null) to each element of channel c, then ReLU if `relu`.
cudaError_t launchAddBias(const float* bias, float* y, const ChannelShape& shape, bool relu,
                          cudaStream_t stream);
/// As above, from x in bfloat16 to y.
cudaError_t launchAddBiasFromBFloat16(const void* x, const float* bias, float* y, const ChannelShape& shape,
                                      bool relu, cudaStream_t stream);

}  // namespace muster::cuda
