#pragma once

#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "muster/core/backend/cpu/dropout_kernels.h"

// The loop of dropout; the file of each instruction set includes it once. Each of the four words of an index
// is the lower half of a 64-bit lane: the instruction that multiplies lower halves ignores the upper ones, so
// no round has to clear or move them. Vectors are passed by reference, because passing them by value differs
// between instruction sets.

namespace muster::cpu::drop {
namespace {

// Lanes are in such an order that `interleave` gives consecutive indices.
#if defined(__AVX512F__)
constexpr int kLanes = 8;
using Wide = std::uint64_t __attribute__((vector_size(64)));
constexpr Wide kOrder{0, 4, 1, 5, 2, 6, 3, 7};
#elif defined(__AVX2__)
constexpr int kLanes = 4;
using Wide = std::uint64_t __attribute__((vector_size(32)));
constexpr Wide kOrder{0, 2, 1, 3};
#else
constexpr int kLanes = 2;
using Wide = std::uint64_t __attribute__((vector_size(16)));
constexpr Wide kOrder{0, 1};
#endif
using Words = std::uint32_t __attribute__((vector_size(sizeof(Wide))));
using Floats = float __attribute__((vector_size(sizeof(Wide))));

constexpr int kRounds = 10;
constexpr int kVectors = 2;  // whose rounds alternate, because a round waits for the previous one
constexpr int kGroup = 4 * kLanes * kVectors;  // elements

/// The products of the lower halves.
[[gnu::always_inline]] inline void multiply(Wide& to, const Wide& from, const Wide& factor) {
#if defined(__AVX512F__)
  to = reinterpret_cast<Wide>(
      _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(from), reinterpret_cast<__m512i>(factor)));
#elif defined(__AVX2__)
  to = reinterpret_cast<Wide>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(from), reinterpret_cast<__m256i>(factor)));
#elif defined(__x86_64__)
  to = reinterpret_cast<Wide>(
      _mm_mul_epu32(reinterpret_cast<__m128i>(from), reinterpret_cast<__m128i>(factor)));
#else
  to = (from & 0xffffffffu) * factor;
#endif
}

/// The even or the odd lanes of a and b, alternately.
[[gnu::always_inline]] inline void interleave(Wide& even, Wide& odd, const Wide& a, const Wide& b) {
#if defined(__AVX512F__)
  even = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
  odd = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
#elif defined(__AVX2__)
  even = __builtin_shufflevector(a, b, 0, 4, 2, 6);
  odd = __builtin_shufflevector(a, b, 1, 5, 3, 7);
#else
  even = __builtin_shufflevector(a, b, 0, 2);
  odd = __builtin_shufflevector(a, b, 1, 3);
#endif
}

struct Stream {
  explicit Stream(const Rule& rule) {
    std::uint32_t key[2] = {rule.key[0], rule.key[1]};
    for (auto& round : keys)
      for (int i = 0; i < 2; ++i) {
        round[i] = Wide{} + key[i];
        key[i] += rule.steps[i];
      }
    for (int i = 0; i < 2; ++i) factors[i] = Wide{} + rule.factors[i];
    c = Wide{} + rule.epoch;
    d = Wide{} + (rule.epoch >> 32);
  }
  Wide keys[kRounds][2], factors[2], c, d;
};

/// The words of the indices from `first` on, one after another: RandomStream::words.
[[gnu::always_inline]] inline void wordsFrom(const Stream& stream, std::uint64_t first,
                                             Words (&words)[2 * kVectors]) {
  Wide a[kVectors], b[kVectors], c[kVectors], d[kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    a[v] = kOrder + (first + static_cast<std::uint64_t>(v * kLanes));
    b[v] = a[v] >> 32;
    c[v] = stream.c;
    d[v] = stream.d;
  }
#pragma GCC unroll 10
  for (const auto& key : stream.keys)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      Wide left, right;
      multiply(left, a[v], stream.factors[0]);
      multiply(right, c[v], stream.factors[1]);
      a[v] = (right >> 32) ^ b[v] ^ key[0];
      b[v] = right;
      c[v] = (left >> 32) ^ d[v] ^ key[1];
      d[v] = left;
    }
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const Wide first2 = (a[v] & 0xffffffffu) | (b[v] << 32), last2 = (c[v] & 0xffffffffu) | (d[v] << 32);
    Wide even, odd;
    interleave(even, odd, first2, last2);
    words[2 * v] = reinterpret_cast<Words>(even);
    words[2 * v + 1] = reinterpret_cast<Words>(odd);
  }
}

[[gnu::always_inline]] inline void dropGroup(const Stream& stream, const Rule& rule, std::uint64_t index,
                                             const float* x, float* y) {
  Words words[2 * kVectors];
  wordsFrom(stream, index, words);
#pragma GCC unroll 4
  for (int v = 0; v < 2 * kVectors; ++v) {
    Floats value;
    std::memcpy(&value, x + v * 2 * kLanes, sizeof value);
    const Words kept =
        reinterpret_cast<Words>(words[v] >= rule.threshold) & reinterpret_cast<Words>(value * rule.scale);
    std::memcpy(y + v * 2 * kLanes, &kept, sizeof kept);
  }
}

void dropRows(const Rule& given, std::uint64_t index, const float* x, float* y, std::int64_t rows,
              std::int64_t features) {
  const Rule rule = given;  // a copy, which the compiler knows writes cannot change
  const Stream stream(rule);
  for (std::int64_t n = 0; n < rows; ++n, x += features, y += features) {
    std::int64_t e = 0;
    for (; e + kGroup <= features; e += kGroup, index += kGroup / 4)
      dropGroup(stream, rule, index, x + e, y + e);
    if (const std::int64_t rest = features - e; rest > 0) {
      float part[kGroup] = {};
      std::memcpy(part, x + e, static_cast<std::size_t>(rest) * sizeof(float));
      dropGroup(stream, rule, index, part, part);
      std::memcpy(y + e, part, static_cast<std::size_t>(rest) * sizeof(float));
      index += static_cast<std::uint64_t>((rest + 3) / 4);
    }
  }
}

}  // namespace
}  // namespace muster::cpu::drop
