#include "muster/core/backend/cpu/conv/small_batch_conv2d_kernels.h"

namespace muster::cpu::small_batch {
namespace {

typedef float V __attribute__((vector_size(32)));
typedef float Unaligned __attribute__((vector_size(32), aligned(4)));
typedef int Mask __attribute__((vector_size(32)));

V load(const float* p) {
  return *reinterpret_cast<const Unaligned*>(p);
}
void store(float* p, V v) {
  *reinterpret_cast<Unaligned*>(p) = v;
}
/// Reads only the elements whose mask is set; the others are 0.
V maskedLoad(const float* p, Mask mask) {
  return __builtin_ia32_maskloadps256(reinterpret_cast<const V*>(p), mask);
}
V broadcast(float f) {
  return V{f, f, f, f, f, f, f, f};
}

/// One vector of channels takes two columns in turn: its few sums would wait for each other.
template <int KernelWidth, int Vectors>
void weightRow(const WeightRow& s, float* sums) {
  constexpr int kColumns = 2 / Vectors;
  V sum[kColumns][KernelWidth][Vectors] = {};
  const auto add = [&](int column, const float* x, const float* gradY) __attribute__((always_inline)) {
    V g[Vectors];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) g[v] = load(gradY + v * kVector);
#pragma GCC unroll 5
    for (int k = 0; k < KernelWidth; ++k) {
      const V in = broadcast(x[k * s.pixel]);
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) sum[column][k][v] += g[v] * in;
    }
  };
  const float* gradY = s.gradY;
  for (std::int64_t n = 0; n < s.batch; ++n)
    for (std::int64_t y = 0; y < s.height; ++y) {
      const float* x = s.x + n * s.sample + y * s.row;
      std::int64_t column = 0;
      for (; column + kColumns <= s.width;
           column += kColumns, x += kColumns * s.pixel, gradY += kColumns * kGroup)
#pragma GCC unroll 2
        for (int c = 0; c < kColumns; ++c) add(c, x + c * s.pixel, gradY + c * kGroup);
      for (; column < s.width; ++column, x += s.pixel, gradY += kGroup) add(0, x, gradY);
    }
#pragma GCC unroll 5
  for (int k = 0; k < KernelWidth; ++k)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v)
      store(sums + k * kGroup + v * kVector,
            kColumns == 2 ? sum[0][k][v] + sum[kColumns - 1][k][v] : sum[0][k][v]);
}

template <int Pixels, int Vectors>
void inputTile(std::int64_t outputs, std::int64_t lanes, const float* gradY, const float* weights,
               float* to) {
  V sum[Pixels][Vectors] = {};
  for (std::int64_t o = 0; o < outputs; ++o) {
    V w[Vectors];
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) w[v] = load(weights + o * lanes + v * kVector);
#pragma GCC unroll 4
    for (int p = 0; p < Pixels; ++p) {
      const V g = broadcast(gradY[p * outputs + o]);
#pragma GCC unroll 3
      for (int v = 0; v < Vectors; ++v) sum[p][v] += w[v] * g;
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < Pixels; ++p)
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      float* at = to + p * lanes + v * kVector;
      store(at, load(at) + sum[p][v]);
    }
}

template <int Vectors>
void inputRow(std::int64_t pixels, std::int64_t outputs, std::int64_t lanes, const float* gradY,
              const float* weights, float* to) {
  std::int64_t p = 0;
  for (; p + 4 <= pixels; p += 4)
    inputTile<4, Vectors>(outputs, lanes, gradY + p * outputs, weights, to + p * lanes);
  for (; p < pixels; ++p) inputTile<1, Vectors>(outputs, lanes, gradY + p * outputs, weights, to + p * lanes);
}

constexpr int kMask[4 * kVector] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

}  // namespace

void packPixelsAvx2(std::int64_t pixels, std::int64_t channels, std::int64_t stride, const float* from,
                    float* to, float* sums) {
  typedef int UnalignedMask __attribute__((vector_size(32), aligned(4)));
  V sum[2] = {};
  Mask mask[2];
  for (int v = 0; v < 2; ++v)
    mask[v] = *reinterpret_cast<const UnalignedMask*>(kMask + kGroup - channels + v * kVector);
  for (std::int64_t p = 0; p < pixels; ++p, from += stride, to += kGroup)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const V in = maskedLoad(from + v * kVector, mask[v]);
      store(to + v * kVector, in);
      sum[v] += in;
    }
  for (int v = 0; v < 2; ++v) store(sums + v * kVector, sum[v]);
}

void weightRowAvx2(const WeightRow& row, int kernelWidth, int vectors, float* sums) {
  if (kernelWidth == 3) return vectors == 2 ? weightRow<3, 2>(row, sums) : weightRow<3, 1>(row, sums);
  vectors == 2 ? weightRow<5, 2>(row, sums) : weightRow<5, 1>(row, sums);
}

void inputRowAvx2(std::int64_t pixels, std::int64_t outputs, std::int64_t lanes, int vectors,
                  const float* gradY, const float* weights, float* to) {
  const auto row = vectors == 3 ? inputRow<3> : vectors == 2 ? inputRow<2> : inputRow<1>;
  row(pixels, outputs, lanes, gradY, weights, to);
}

}  // namespace muster::cpu::small_batch
