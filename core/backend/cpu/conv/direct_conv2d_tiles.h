#pragma once

#include "muster/core/backend/cpu/conv/direct_conv2d_kernels.h"

// The kernels as templates over the vector width; the file of each instruction set includes them once.
// Everything is in an unnamed namespace, so each file keeps its own code.
//
// Note [Tiles of the direct convolution]
// Sixteen samples are adjacent, so one weight multiplies a whole vector of samples: a broadcast and a fused
// multiply-add, no shuffles, no unused lanes. A tile keeps `channels x columns` sums and the weights of its
// channels at one tap in registers, and loads an input vector once for all channels. That fills 16 registers
// with 3 x 4 sums (AVX2: 94 % of the peak with 3 x 4; 78 % with 2 x 4, whose 8 independent sums are too few
// to hide latency; 50 % with 4 x 3, which spills). With AVX-512 2 x 8 is as fast as larger tiles.

namespace muster::cpu::direct {
namespace {

constexpr std::int64_t kSamples = 16;

template <int Lanes>
struct VectorOf;
template <>
struct VectorOf<16> {
  typedef float type __attribute__((vector_size(64)));
};
template <>
struct VectorOf<8> {
  typedef float type __attribute__((vector_size(32)));
};

inline float sumOf(VectorOf<8>::type v) {
  typedef float V4 __attribute__((vector_size(16)));
  const V4 four = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
  return (four[0] + four[2]) + (four[1] + four[3]);
}

inline float sumOf(VectorOf<16>::type v) {
  return sumOf(VectorOf<8>::type(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                                 __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)));
}

/// Tile sizes that fit the registers of an instruction set.
template <int Lanes>
struct Tile;
template <>
struct Tile<16> {
  static constexpr int kForward = 2, kBackward = 2, kColumns = 8, kSums = 25;
};
template <>
struct Tile<8> {
  static constexpr int kForward = 3, kBackward = 2, kColumns = 4, kSums = 10;
};

/// Adds the product of float32 lanes.
struct Products {
  template <typename V>
  static V add(V sum, V a, V b) {
    return sum + a * b;
  }
};

template <int Lanes, int KernelWidth, typename Arithmetic>
struct KernelsFor {
  using V = typename VectorOf<Lanes>::type;
  static constexpr int kForward = Tile<Lanes>::kForward;
  static constexpr int kBackward = Tile<Lanes>::kBackward;
  static constexpr int kColumns = Tile<Lanes>::kColumns;
  static constexpr int kWeightChannels =
      Tile<Lanes>::kSums / KernelWidth < 8 ? Tile<Lanes>::kSums / KernelWidth : 8;

  static V load(const float* p) { return *reinterpret_cast<const V*>(p); }
  static void store(float* p, V v) { *reinterpret_cast<V*>(p) = v; }
  static V broadcast(float f) {
    if constexpr (Lanes == 8)
      return V{f, f, f, f, f, f, f, f};
    else
      return V{f, f, f, f, f, f, f, f, f, f, f, f, f, f, f, f};
  }
  /// Loads into a register: otherwise the compiler loads the vector again for each use.
  static V loadOnce(const float* p) {
    V v = load(p);
    asm volatile("" : "+v"(v));
    return v;
  }

  template <int Channels, int Columns>
  static void forwardTile(const BlockShape& s, const float* x, const float* w, const float* bias, float* y) {
    V sum[Channels][Columns];
    for (int c = 0; c < Channels; ++c)
      for (int j = 0; j < Columns; ++j) sum[c][j] = broadcast(bias ? bias[c] : 0.0f);
    const std::int64_t inRow = s.inWidth * kSamples, inPlane = s.inHeight * inRow;
    for (std::int64_t channel = 0; channel < s.inChannels; ++channel)
      for (std::int64_t ky = 0; ky < s.kernelHeight; ++ky) {
        const float* row = x + channel * inPlane + ky * inRow;
#pragma GCC unroll 8
        for (int k = 0; k < KernelWidth; ++k) {
          V weight[Channels];
#pragma GCC unroll 8
          for (int c = 0; c < Channels; ++c) weight[c] = broadcast(w[k * Channels + c]);
#pragma GCC unroll 8
          for (int j = 0; j < Columns; ++j) {
            const V in = loadOnce(row + (j + k) * kSamples);
#pragma GCC unroll 8
            for (int c = 0; c < Channels; ++c) sum[c][j] = Arithmetic::add(sum[c][j], weight[c], in);
          }
        }
        w += Channels * KernelWidth;
      }
    const std::int64_t outPlane = s.outHeight * s.outWidth * kSamples;
    for (int c = 0; c < Channels; ++c)
      for (int j = 0; j < Columns; ++j) store(y + c * outPlane + j * kSamples, sum[c][j]);
  }

  template <int Channels>
  static void forwardGroup(const BlockShape& s, const float* x, const float* w, const float* bias, float* y) {
    for (std::int64_t half = 0; half < s.samples; half += Lanes)
      for (std::int64_t row = 0; row < s.outHeight; ++row) {
        const float* from = x + row * s.inWidth * kSamples + half;
        float* to = y + row * s.outWidth * kSamples + half;
        std::int64_t column = 0;
        for (; column + kColumns <= s.outWidth; column += kColumns)
          forwardTile<Channels, kColumns>(s, from + column * kSamples, w, bias, to + column * kSamples);
        for (; column + 2 <= s.outWidth; column += 2)
          forwardTile<Channels, 2>(s, from + column * kSamples, w, bias, to + column * kSamples);
        for (; column < s.outWidth; ++column)
          forwardTile<Channels, 1>(s, from + column * kSamples, w, bias, to + column * kSamples);
      }
  }

  static void forward(const BlockShape& s, int outputs, const float* x, const float* w, const float* bias,
                      float* y) {
    if (outputs == kForward) return forwardGroup<kForward>(s, x, w, bias, y);
    outputs == 2 ? forwardGroup<2>(s, x, w, bias, y) : forwardGroup<1>(s, x, w, bias, y);
  }

  /// One range of output columns and one kernel row: adds to `Columns + KernelWidth - 1` input columns.
  template <int Channels, int Columns>
  static void backwardTile(const BlockShape& s, const float* gradY, const float* w, float* gradX) {
    constexpr int kSpan = Columns + KernelWidth - 1;
    V sum[Channels][kSpan] = {};
    for (std::int64_t channel = 0; channel < s.outChannels; ++channel) {
      const float* row = gradY + channel * s.outWidth * kSamples;
      V in[Columns];
      for (int j = 0; j < Columns; ++j) in[j] = load(row + j * kSamples);
      for (int c = 0; c < Channels; ++c)
        for (int k = 0; k < KernelWidth; ++k) {
          const V weight = broadcast(w[c * KernelWidth + k]);
          for (int j = 0; j < Columns; ++j) sum[c][j + k] = Arithmetic::add(sum[c][j + k], weight, in[j]);
        }
      w += Channels * KernelWidth;
    }
    const std::int64_t inPlane = s.inHeight * s.inWidth * kSamples;
    for (int c = 0; c < Channels; ++c)
      for (int j = 0; j < kSpan; ++j) {
        float* to = gradX + c * inPlane + j * kSamples;
        store(to, load(to) + sum[c][j]);
      }
  }

  template <int Channels>
  static void backwardGroup(const BlockShape& s, std::int64_t row, const float* gradY, const float* w,
                            float* gradX) {
    for (std::int64_t half = 0; half < s.samples; half += Lanes)
      for (std::int64_t ky = 0; ky < s.kernelHeight; ++ky) {
        const float* weights = w + ky * s.outChannels * Channels * KernelWidth;
        const float* from = gradY + half;
        float* to = gradX + (row + ky) * s.inWidth * kSamples + half;
        std::int64_t column = 0;
        for (; column + kColumns <= s.outWidth; column += kColumns)
          backwardTile<Channels, kColumns>(s, from + column * kSamples, weights, to + column * kSamples);
        for (; column + 2 <= s.outWidth; column += 2)
          backwardTile<Channels, 2>(s, from + column * kSamples, weights, to + column * kSamples);
        for (; column < s.outWidth; ++column)
          backwardTile<Channels, 1>(s, from + column * kSamples, weights, to + column * kSamples);
      }
  }

  static void backwardData(const BlockShape& s, int inputs, std::int64_t row, const float* gradY,
                           const float* w, float* gradX) {
    inputs == kBackward ? backwardGroup<kBackward>(s, row, gradY, w, gradX)
                        : backwardGroup<1>(s, row, gradY, w, gradX);
  }

  template <int Channels>
  static void weightTile(const BlockShape& s, const float* x, const float* gradY, float* gradWeight,
                         std::int64_t stride) {
    const std::int64_t outRow = s.outWidth * kSamples, outPlane = s.outHeight * outRow;
    V sum[Channels][KernelWidth] = {};
    for (std::int64_t half = 0; half < s.samples; half += Lanes)
      for (std::int64_t row = 0; row < s.outHeight; ++row) {
        const float* in = x + row * s.inWidth * kSamples + half;
        const float* grad = gradY + row * outRow + half;
        for (std::int64_t column = 0; column < s.outWidth; ++column, in += kSamples, grad += kSamples) {
          V g[Channels];
#pragma GCC unroll 8
          for (int c = 0; c < Channels; ++c) g[c] = load(grad + c * outPlane);
#pragma GCC unroll 8
          for (int k = 0; k < KernelWidth; ++k) {
            const V window = load(in + k * kSamples);
#pragma GCC unroll 8
            for (int c = 0; c < Channels; ++c) sum[c][k] = Arithmetic::add(sum[c][k], g[c], window);
          }
        }
      }
    for (int c = 0; c < Channels; ++c)
      for (int k = 0; k < KernelWidth; ++k) gradWeight[c * stride + k] += sumOf(sum[c][k]);
  }

  static void backwardWeights(const BlockShape& s, int outputs, const float* x, const float* gradY,
                              float* gradWeight, std::int64_t stride) {
    const std::int64_t outPlane = s.outHeight * s.outWidth * kSamples;
    if (outputs == kWeightChannels) return weightTile<kWeightChannels>(s, x, gradY, gradWeight, stride);
    for (int c = 0; c < outputs; ++c)
      weightTile<1>(s, x, gradY + c * outPlane, gradWeight + c * stride, stride);
  }

  static float planeSum(const BlockShape& s, const float* gradY) {
    V sum{};
    const std::int64_t elements = s.outHeight * s.outWidth * kSamples;
    for (std::int64_t i = 0; i < elements; i += Lanes) sum += load(gradY + i);
    return sumOf(sum);
  }

  static constexpr Kernels kTable{kForward,     kBackward,       kWeightChannels, forward,
                                  backwardData, backwardWeights, planeSum};
};

template <int Lanes, typename Arithmetic = Products>
const Kernels* kernelsFor(std::int64_t kernelWidth) {
  switch (kernelWidth) {
    case 1:
      return &KernelsFor<Lanes, 1, Arithmetic>::kTable;
    case 3:
      return &KernelsFor<Lanes, 3, Arithmetic>::kTable;
    case 5:
      return &KernelsFor<Lanes, 5, Arithmetic>::kTable;
    case 7:
      return &KernelsFor<Lanes, 7, Arithmetic>::kTable;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace muster::cpu::direct
