#include "muster/core/backend/cpu/conv/pixel_conv2d_kernels.h"

namespace muster::cpu::pixels {
namespace {

typedef float V __attribute__((vector_size(64)));
typedef float Unaligned __attribute__((vector_size(64), aligned(4)));
typedef float Four __attribute__((vector_size(16), aligned(4)));
typedef unsigned short Mask;

// A tile keeps the sums of kVectors vectors of pixels and a few channels or taps in registers.
constexpr int kVectors = 4, kTaps = 5;

V load(const float* p) {
  return *reinterpret_cast<const Unaligned*>(p);
}
void store(float* p, V v) {
  *reinterpret_cast<Unaligned*>(p) = v;
}
/// Reads only the elements whose mask is set; the others are 0.
V load(const float* p, Mask mask) {
  return __builtin_ia32_loadups512_mask(p, V{}, mask);
}
void store(float* p, V v, Mask mask) {
  __builtin_ia32_storeups512_mask(p, v, mask);
}
/// The lanes below `count`.
Mask lanes(std::int64_t count) {
  return static_cast<Mask>(count >= kVector ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}
V broadcast(float f) {
  return V{f, f, f, f, f, f, f, f, f, f, f, f, f, f, f, f};
}
/// Loads into a register: otherwise the compiler loads the value again for each use.
V broadcastOnce(const float* p) {
  V v = broadcast(*p);
  asm volatile("" : "+v"(v));
  return v;
}
/// Four floats in each quarter. GCC would load them once and shuffle.
V repeat(const float* p) {
  V v;
  asm("vbroadcastf32x4 %1, %0" : "=v"(v) : "m"(*reinterpret_cast<const Four*>(p)));
  return v;
}

/// Calls tile.operator()<count>(first) for groups of `Most` of `count` elements, and for the rest.
template <int Most, typename F>
[[gnu::always_inline]] inline void inGroups(std::int64_t count, F tile) {
  static_assert(Most <= 5);
  std::int64_t first = 0;
  for (; first + Most <= count; first += Most) tile.template operator()<Most>(first);
  const std::int64_t rest = count - first;
  if constexpr (Most > 4)
    if (rest == 4) tile.template operator()<4>(first);
  if (rest == 3) tile.template operator()<3>(first);
  if (rest == 2) tile.template operator()<2>(first);
  if (rest == 1) tile.template operator()<1>(first);
}

/// Calls tile.operator()<vectors>(first pixel, mask of the last vector).
template <typename F>
[[gnu::always_inline]] inline void forPixels(std::int64_t pixels, F tile) {
  inGroups<kVectors>((pixels + kVector - 1) / kVector, [&]<int Vectors>(std::int64_t v) {
    const std::int64_t p = v * kVector;
    tile.template operator()<Vectors>(p, lanes(pixels - p - (Vectors - 1) * kVector));
  });
}

template <int Outputs, int Vectors>
void forwardTile(const Sizes& s, Mask last, const float* x, const float* weight, const float* bias,
                 float* y) {
  V sum[Outputs][Vectors];
  for (int o = 0; o < Outputs; ++o)
    for (int v = 0; v < Vectors; ++v) sum[o][v] = broadcast(bias ? bias[o] : 0.0f);
  const std::int64_t taps = s.taps;
  for (std::int64_t t = 0; t < taps; ++t) {
    const float* from = x + s.places[t];
    V in[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) in[v] = load(from + v * kVector);
#pragma GCC unroll 5
    for (int o = 0; o < Outputs; ++o) {
      const V w = broadcastOnce(weight + o * taps + t);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sum[o][v] += w * in[v];
    }
  }
#pragma GCC unroll 5
  for (int o = 0; o < Outputs; ++o)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      float* to = y + o * s.pixels + v * kVector;
      v == Vectors - 1 ? store(to, sum[o][v], last) : store(to, sum[o][v]);
    }
}

template <int Taps, int Vectors>
void dataTile(const Sizes& s, Mask last, std::int64_t outputs, const std::int64_t* places, const float* gradY,
              const float* weight, float* gradX) {
  V sum[Taps][Vectors] = {};
  for (std::int64_t o = 0; o < outputs; ++o, gradY += s.pixels, weight += s.taps) {
    V g[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      g[v] = v == Vectors - 1 ? load(gradY + v * kVector, last) : load(gradY + v * kVector);
#pragma GCC unroll 5
    for (int t = 0; t < Taps; ++t) {
      const V w = broadcastOnce(weight + t);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sum[t][v] += w * g[v];
    }
  }
#pragma GCC unroll 5
  for (int t = 0; t < Taps; ++t)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      float* to = gradX + places[t] + v * kVector;
      v == Vectors - 1 ? store(to, load(to, last) + sum[t][v], last) : store(to, load(to) + sum[t][v]);
    }
}

/// Eight elements of a, then of b, from element `First` on.
template <int First>
V halves(V a, V b) {
  constexpr int k = First;
  return __builtin_shufflevector(a, b, k, k + 1, k + 2, k + 3, k + 4, k + 5, k + 6, k + 7, k + 16, k + 17,
                                 k + 18, k + 19, k + 20, k + 21, k + 22, k + 23);
}
/// The even quarters of a, then of b; with `First` = 4 the odd ones.
template <int First>
V quarters(V a, V b) {
  constexpr int k = First;
  return __builtin_shufflevector(a, b, k, k + 1, k + 2, k + 3, k + 8, k + 9, k + 10, k + 11, k + 16, k + 17,
                                 k + 18, k + 19, k + 24, k + 25, k + 26, k + 27);
}
/// In each quarter, adds adjacent elements of a, then of b.
V pairs(V a, V b) {
  return __builtin_shufflevector(a, b, 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30) +
         __builtin_shufflevector(a, b, 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31);
}
/// The second quarter becomes the first.
V rotate(V v) {
  return __builtin_shufflevector(v, v, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3);
}

/// A vector of sums holds four output channels times four parts, one for every fourth pixel.
template <int Quads, int Taps>
void weightTile(const Sizes& s, const Samples& samples, std::int64_t outputs, const std::int64_t* places,
                const float* x, const float* packed, bool add, float* gradWeight) {
  V sum[kTaps][Quads] = {};
  for (std::int64_t n = 0; n < samples.count; ++n) {
    const float* in[Taps];
#pragma GCC unroll 5
    for (int t = 0; t < Taps; ++t) {
      in[t] = x + n * samples.x + places[t];
      asm volatile("" : "+r"(in[t]));  // otherwise the compiler adds three numbers for each load
    }
    const float* grad = packed + n * samples.packed;
    for (std::int64_t p = 0; p < s.pixels; p += 4, grad += Quads * kVector) {
      V g[Quads];
#pragma GCC unroll 4
      for (int q = 0; q < Quads; ++q) g[q] = load(grad + q * kVector);
#pragma GCC unroll 5
      for (int t = 0; t < Taps; ++t) {
        const V window = repeat(in[t] + p);
#pragma GCC unroll 4
        for (int q = 0; q < Quads; ++q) sum[t][q] += g[q] * window;
      }
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < Quads; ++q) {
    V total = pairs(pairs(sum[0][q], sum[1][q]), pairs(sum[2][q], sum[3][q]));  // [output][tap]
    V fifth = pairs(pairs(sum[4][q], V{}), V{});
#pragma GCC unroll 4
    for (int o = 4 * q; o < 4 * q + 4; ++o) {
      if (o >= outputs) return;
      float* to = gradWeight + o * s.taps;
      if constexpr (Taps >= 4) {
        const Four four = __builtin_shufflevector(total, total, 0, 1, 2, 3);
        *reinterpret_cast<Four*>(to) = add ? *reinterpret_cast<Four*>(to) + four : four;
      } else {
        for (int t = 0; t < Taps; ++t) to[t] = add ? to[t] + total[t] : total[t];
      }
      if constexpr (Taps == 5) to[4] = add ? to[4] + fifth[0] : fifth[0];
      total = rotate(total);
      fifth = rotate(fifth);
    }
  }
}

}  // namespace

void copyShiftedAvx512(const Image& image, const float* x, float* to) {
  const Image s = image;
  for (std::int64_t k = 0; k < s.kernelWidth; ++k)
    for (std::int64_t row = 0; row < s.height; ++row, to += s.outWidth)
      for (std::int64_t c = 0; c < s.outWidth; c += kVector)  // the next row overwrites what is too much
        store(to + c, load(x + row * s.width + k + c, lanes(s.outWidth - c)));
}

void addShiftedAvx512(const Image& image, const float* from, float* x) {
  const Image s = image;
  for (std::int64_t c = 0; c < s.width; c += kVector)
    for (std::int64_t row = 0; row < s.height; ++row) {
      V sum{};
      for (std::int64_t k = 0; k < s.kernelWidth; ++k) {
        const auto mask = static_cast<Mask>(lanes(s.outWidth + k - c) & ~lanes(k - c));
        sum += load(from + (k * s.height + row) * s.outWidth + c - k, mask);
      }
      store(x + row * s.width + c, sum, lanes(s.width - c));
    }
}

void forwardAvx512(const Sizes& sizes, std::int64_t outputs, const float* x, const float* weight,
                   const float* bias, float* y) {
  const Sizes s = sizes;
  inGroups<kOutputs>(outputs, [&]<int Outputs>(std::int64_t o) {
    forPixels(s.pixels, [&]<int Vectors>(std::int64_t p, Mask last) {
      forwardTile<Outputs, Vectors>(s, last, x + p, weight + o * s.taps, bias ? bias + o : nullptr,
                                    y + o * s.pixels + p);
    });
  });
}

void backwardDataAvx512(const Sizes& sizes, std::int64_t outputs, std::int64_t taps, const float* gradY,
                        const float* weight, float* gradX) {
  const Sizes s = sizes;
  inGroups<kTaps>(taps, [&]<int Taps>(std::int64_t t) {
    forPixels(s.pixels, [&]<int Vectors>(std::int64_t p, Mask last) {
      dataTile<Taps, Vectors>(s, last, outputs, s.places + t, gradY + p, weight + t, gradX + p);
    });
  });
}

void packGradYAvx512(const Sizes& sizes, std::int64_t outputs, const float* gradY, std::int64_t distance,
                     float* to, float* sums) {
  const std::int64_t pixels = sizes.pixels;
  V sum{};
  const auto pack = [&](std::int64_t p, std::int64_t count, auto read) __attribute__((always_inline)) {
    V from[4];  // [output]
#pragma GCC unroll 4
    for (int o = 0; o < 4; ++o) from[o] = o < outputs ? read(gradY + o * pixels + p) : V{};
    const V low[2] = {halves<0>(from[0], from[1]), halves<0>(from[2], from[3])};
    const V high[2] = {halves<8>(from[0], from[1]), halves<8>(from[2], from[3])};
    const V fours[4] = {quarters<0>(low[0], low[1]), quarters<4>(low[0], low[1]),
                        quarters<0>(high[0], high[1]), quarters<4>(high[0], high[1])};
    sum += (fours[0] + fours[1]) + (fours[2] + fours[3]);
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k)
      if (4 * k < count) store(to + k * distance, fours[k]);
    to += 4 * distance;
  };
  std::int64_t p = 0;
  for (; p + kVector <= pixels; p += kVector)
    pack(
        p, kVector, [](const float* at) __attribute__((always_inline)) { return load(at); });
  if (p < pixels)
    pack(
        p, pixels - p, [=](const float* at) __attribute__((always_inline)) {
          return load(at, lanes(pixels - p));
        });
  const V total = pairs(pairs(sum, V{}), V{});
  for (std::int64_t o = 0; o < outputs; ++o) sums[o] = total[o * 4];
}

void backwardWeightsAvx512(const Sizes& sizes, const Samples& samples, std::int64_t outputs,
                           std::int64_t taps, const float* x, const float* packed, bool add,
                           float* gradWeight) {
  const Sizes s = sizes;
  inGroups<kMostQuads>((outputs + 3) / 4, [&]<int Quads>(std::int64_t) {
    inGroups<kTaps>(taps, [&]<int Taps>(std::int64_t t) {
      weightTile<Quads, Taps>(s, samples, outputs, s.places + t, x, packed, add, gradWeight + t);
    });
  });
}

}  // namespace muster::cpu::pixels
