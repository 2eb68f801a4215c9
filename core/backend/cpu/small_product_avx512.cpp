#include "muster/core/backend/cpu/small_product.h"
#include "muster/core/backend/cpu/square.h"

namespace muster::cpu {
namespace {

// Weights are transposed to panels [in, kVectors * 16], so that a vector holds outputs; a tile keeps kRows x
// kVectors sums in registers. With eight rows, 16 independent sums hide latency, and batches of 32 have no
// remainder (on a Zen 5 core 12 rows take a quarter longer, and 4 rows a tenth longer on narrow panels).

typedef float Vector __attribute__((vector_size(64)));
typedef float VectorAnywhere __attribute__((vector_size(64), aligned(4)));
constexpr int kLanes = 16, kRows = 8;

template <int Vectors>
struct Panel {
  static constexpr int kWidth = Vectors * kLanes;

  std::int64_t in;
  int outs;  // at most kWidth; further columns are not read
  float* weights;
  alignas(64) float bias[kWidth];

  Panel(std::int64_t inputs, int outputs, const float* weight, const float* from, float* scratch)
      : in(inputs), outs(outputs), weights(scratch), bias{} {
    if (from) __builtin_memcpy(bias, from, static_cast<std::size_t>(outs) * sizeof(float));
    int o = 0;
    for (; o + 8 <= outs; o += 8) {
      std::int64_t i = 0;
      for (; i + 8 <= in; i += 8) {
        Square some;
        some.load(weight + o * in + i, [=](int k) { return k * inputs; });
        some.store(weights + i * kWidth + o, [](int k) { return k * kWidth; });
      }
      for (; i < in; ++i)
        for (int k = 0; k < 8; ++k) weights[i * kWidth + o + k] = weight[(o + k) * in + i];
    }
    for (; o < outs; ++o)
      for (std::int64_t i = 0; i < in; ++i) weights[i * kWidth + o] = weight[o * in + i];
    // Clear old scratch contents, which may be denormal numbers that slow arithmetic down.
    for (; o < kWidth; ++o)
      for (std::int64_t i = 0; i < in; ++i) weights[i * kWidth + o] = 0;
  }

  template <int Rows>
  void multiply(const float* x, float* y, std::int64_t out) const {
    Vector sums[Rows][Vectors];
    for (int r = 0; r < Rows; ++r)
      for (int v = 0; v < Vectors; ++v) sums[r][v] = *reinterpret_cast<const Vector*>(bias + v * kLanes);
    for (std::int64_t i = 0; i < in; ++i) {
      Vector weight[Vectors];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v)
        weight[v] = *reinterpret_cast<const Vector*>(weights + i * kWidth + v * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const float from = x[r * in + i];
#pragma GCC unroll 2
        for (int v = 0; v < Vectors; ++v) sums[r][v] += weight[v] * from;
      }
    }
    for (int r = 0; r < Rows; ++r)
      if (outs == kWidth)
        for (int v = 0; v < Vectors; ++v)
          *reinterpret_cast<VectorAnywhere*>(y + r * out + v * kLanes) = sums[r][v];
      else
        __builtin_memcpy(y + r * out, &sums[r], static_cast<std::size_t>(outs) * sizeof(float));
  }

  void multiply(std::int64_t batch, const float* x, float* y, std::int64_t out) const {
    std::int64_t n = 0;
    for (; n + kRows <= batch; n += kRows) multiply<kRows>(x + n * in, y + n * out, out);
    for (; n + 2 <= batch; n += 2) multiply<2>(x + n * in, y + n * out, out);
    for (; n < batch; ++n) multiply<1>(x + n * in, y + n * out, out);
  }
};

/// Computes one panel of outputs, starting with output `from`.
template <int Vectors>
void multiplyColumns(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t from, const float* x,
                     const float* weight, const float* bias, float* y, float* scratch) {
  constexpr int kWidth = Panel<Vectors>::kWidth;
  const int outs = out - from < kWidth ? static_cast<int>(out - from) : kWidth;
  Panel<Vectors>(in, outs, weight + from * in, bias ? bias + from : nullptr, scratch)
      .multiply(batch, x, y + from, out);
}

}  // namespace

void smallProductAvx512(std::int64_t batch, std::int64_t in, std::int64_t out, const float* x,
                        const float* weight, const float* bias, float* y, float* scratch) {
  std::int64_t from = 0;
  for (; out - from > kLanes; from += 2 * kLanes)
    multiplyColumns<2>(batch, in, out, from, x, weight, bias, y, scratch);
  if (from < out) multiplyColumns<1>(batch, in, out, from, x, weight, bias, y, scratch);
}

}  // namespace muster::cpu
