#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "muster/core/ops/detail/host_device.h"

// What `codeDelta` and `codeLowRank` do with one element. Each rule is written once, for every backend.

namespace muster::coding {

inline constexpr std::int64_t kChunk = 256;  // elements of one scale

/// The elements of a replica that are encoded.
template <typename T>
struct Move {
  const T* values;
  T* sent;  // the base at first
  T* residual;
  double remember;

  MUSTER_HOST_DEVICE double at(std::int64_t i) const {
    return static_cast<double>(values[i]) - static_cast<double>(sent[i]) + static_cast<double>(residual[i]);
  }
  /// Sends q of the move v.
  MUSTER_HOST_DEVICE void send(std::int64_t i, double v, double q) const {
    const double base = sent[i];
    const T now = static_cast<T>(base + q);
    const double left = v - (static_cast<double>(now) - base);
    residual[i] = static_cast<T>(remember == 1 ? left : remember * left);
    sent[i] = now;
  }
};

/// The bits without the sign, which order magnitudes; NaN is above all.
MUSTER_HOST_DEVICE std::uint32_t magnitude(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7fffffffu;
}

MUSTER_HOST_DEVICE float bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (magnitude(x) > 0x7f800000u) return x;  // NaN
  return std::bit_cast<float>((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}

/// The whole number in [-127, 127] that is sent of x; no -0. @param scale  above 0.
MUSTER_HOST_DEVICE float int8Level(float x, float scale) {
  constexpr float kRound = 0x1.8p23f;  // to the nearest whole number, to even from the middle
  const float level = x / scale + kRound - kRound;
  return level > 127 ? 127 : level < -127 ? -127 : level;
}

/// @param largest  magnitude of the chunk.
MUSTER_HOST_DEVICE float int8(float x, float largest) {
  const float scale = largest / 127;
  return scale == 0 ? 0 : int8Level(x, scale) * scale;
}

/// The exponent, as float32 stores it, of the power of two that is nearest; from the middle the larger one.
MUSTER_HOST_DEVICE std::int32_t nearestExponent(float x) {
  const std::uint32_t bits = magnitude(x);
  const auto exponent = static_cast<std::int32_t>((bits >> 23) + (bits >> 22 & 1u));
  return exponent > 254 ? 254 : exponent;
}

/// @param largest  magnitude of the chunk.
MUSTER_HOST_DEVICE float e3m0(float x, float largest) {
  if (magnitude(x) > 0x7f800000u) return x;  // NaN
  const std::int32_t lowest = nearestExponent(largest) - 6;
  std::int32_t exponent = nearestExponent(x);
  if (exponent < lowest) exponent = static_cast<std::int32_t>(magnitude(x) >> 23) + 1 == lowest ? lowest : 0;
  if (exponent <= 0) return 0;
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent) << 23 |
                              (std::bit_cast<std::uint32_t>(x) & 0x80000000u));
}

// TopK finds the smallest magnitude to send by a radix selection: it fixes the bits of the magnitude digit by
// digit, from the upper bits down. For each digit it counts the elements that agree in all earlier digits.
inline constexpr int kDigits = 3;
inline constexpr int kBins = 1 << 11;
MUSTER_HOST_DEVICE int digitShift(int digit) {
  return digit == 0 ? 21 : digit == 1 ? 10 : 0;
}
MUSTER_HOST_DEVICE std::uint32_t digitMask(int digit) {
  return digit == 2 ? 0x3ffu : 0x7ffu;
}
MUSTER_HOST_DEVICE std::uint32_t digitOf(std::uint32_t m, int digit) {
  return m >> digitShift(digit) & digitMask(digit);
}

/// The part of the smallest magnitude to send that the selection has fixed so far.
struct Threshold {
  std::uint32_t bits = 0, mask = 0;  // the fixed upper digits, and the mask of their bits
  std::int64_t left = 0;             // how many elements to send among those that agree in the fixed digits

  MUSTER_HOST_DEVICE bool agrees(std::uint32_t m) const { return (m & mask) == bits; }
  MUSTER_HOST_DEVICE bool above(std::uint32_t m) const { return (m & mask) > bits; }
  /// Fixes the next digit: the bin of the last element to send.
  /// @param counts  elements for each value of the digit.
  template <typename Count>
  MUSTER_HOST_DEVICE void take(const Count* counts, int digit) {
    int bin = static_cast<int>(digitMask(digit));
    while (bin > 0 && static_cast<std::int64_t>(counts[bin]) < left)
      left -= static_cast<std::int64_t>(counts[bin--]);
    bits |= static_cast<std::uint32_t>(bin) << digitShift(digit);
    mask |= digitMask(digit) << digitShift(digit);
  }
};

/// An element of Q; at first all are 0, and these fixed numbers in [-1, 1) take their place.
MUSTER_HOST_DEVICE double started(double q, std::int64_t column, std::int64_t k) {
  if (q != 0) return q;
  std::uint64_t z = (static_cast<std::uint64_t>(column) * 64 + static_cast<std::uint64_t>(k) + 1) *
                    0x9e3779b97f4a7c15u;  // SplitMix64
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return static_cast<double>((z ^ z >> 31) >> 11) * 0x1p-52 - 1;
}

/// 1 / the length of a column; 0 if only rounding was left of it. Both arguments are squares.
MUSTER_HOST_DEVICE double inverseLength(double before, double after) {
  return after > before * 1e-10 ? 1 / sqrt(after) : 0;
}

/// An element of P Q^T.
template <typename T>
MUSTER_HOST_DEVICE double product(const T* p, const T* q, std::int64_t rank) {
  double sum = 0;
  for (std::int64_t k = 0; k < rank; ++k) sum += static_cast<double>(p[k]) * static_cast<double>(q[k]);
  return sum;
}

}  // namespace muster::coding
