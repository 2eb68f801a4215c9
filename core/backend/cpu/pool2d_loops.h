#pragma once

#include <cstring>

#include "muster/core/backend/cpu/pool2d_kernels.h"

// The loops of pooling; the file of each instruction set includes them once. Lanes are taken a vector of the
// instruction set at a time, the rest one by one. Vectors are passed by reference, because passing them by
// value differs between instruction sets.

namespace muster::cpu::pool {
namespace {

// Not wider: the compiler splits comparisons of wider vectors into single lanes.
#if defined(__AVX512F__)
constexpr std::int64_t kLanes = 16;
#elif defined(__AVX2__)
constexpr std::int64_t kLanes = 8;
#else
constexpr std::int64_t kLanes = 4;
#endif
using Bytes = std::uint8_t __attribute__((vector_size(kLanes)));
using FourBytes = std::uint8_t __attribute__((vector_size(4)));

/// A vector of lanes.
struct Whole {
  using Floats = float __attribute__((vector_size(kLanes * 4)));
  using Ints = std::int32_t __attribute__((vector_size(kLanes * 4)));

  template <typename To, typename From>
  [[gnu::always_inline]] static void load(To& to, const From* from) {
    std::memcpy(&to, from, sizeof to);
  }
  template <typename From, typename To>
  [[gnu::always_inline]] static void store(const From& from, To* to) {
    std::memcpy(to, &from, sizeof from);
  }
  [[gnu::always_inline]] static void loadPlaces(Ints& to, const std::int32_t* from) { load(to, from); }
  [[gnu::always_inline]] static void loadPlaces(Ints& to, const std::uint8_t* from) {
    Bytes bytes;
    load(bytes, from);
    to = __builtin_convertvector(bytes, Ints);
  }
  [[gnu::always_inline]] static void storePlaces(const Ints& from, std::int32_t* to) { store(from, to); }
  [[gnu::always_inline]] static void storePlaces(const Ints& from, std::uint8_t* to) {
    store(__builtin_convertvector(from, Bytes), to);
  }
};

/// One lane, as lane 0 of a small vector: scalar comparisons would become branches that often mispredict.
struct One {
  using Floats = float __attribute__((vector_size(16)));
  using Ints = std::int32_t __attribute__((vector_size(16)));

  [[gnu::always_inline]] static void load(Floats& to, const float* from) { to = Floats{*from, 0, 0, 0}; }
  [[gnu::always_inline]] static void store(const Floats& from, float* to) { *to = from[0]; }
  template <typename Index>
  [[gnu::always_inline]] static void storePlaces(const Ints& from, Index* to) {
    *to = static_cast<Index>(from[0]);
  }
};

/// The kernel positions of a window that are inside the input, and the input pixel of position (0, 0).
struct Window {
  std::int64_t rowBegin, rowEnd, columnBegin, columnEnd, row, column;
};

/// A copy of the plane, which the compiler knows writes cannot change. With `kSquare` the compiler also knows
/// the most common kernel: 2 x 2 without padding.
template <bool kSquare>
[[gnu::always_inline]] inline Plane known(const Plane& plane) {
  Plane p = plane;
  if (kSquare) p.kernel[0] = p.kernel[1] = 2, p.padding[0] = p.padding[1] = 0;
  return p;
}

inline bool isSquare(const Plane& p) {
  return p.kernel[0] == 2 && p.kernel[1] == 2 && p.padding[0] == 0 && p.padding[1] == 0;
}

template <bool kSquare>
[[gnu::always_inline]] inline Window windowAt(const Plane& p, std::int64_t oh, std::int64_t ow) {
  if (kSquare) return {0, 2, 0, 2, oh * p.stride[0], ow * p.stride[1]};
  const std::int64_t row = oh * p.stride[0] - p.padding[0], column = ow * p.stride[1] - p.padding[1];
  return {row < 0 ? -row : 0,
          row + p.kernel[0] > p.height ? p.height - row : p.kernel[0],
          column < 0 ? -column : 0,
          column + p.kernel[1] > p.width ? p.width - column : p.kernel[1],
          row,
          column};
}

/// Calls f(kernel position, offset in the plane) for the window's pixels, row by row.
template <typename F>
[[gnu::always_inline]] inline void forEachPixel(const Plane& p, const Window& w, F f) {
  for (std::int64_t r = w.rowBegin; r < w.rowEnd; ++r)
    for (std::int64_t c = w.columnBegin; c < w.columnEnd; ++c)
      f(static_cast<std::int32_t>(r * p.kernel[1] + c), ((w.row + r) * p.width + w.column + c) * p.lanes);
}

/// Calls vector(window, output offset, lane) for each vector of lanes of each output, and single(...) for
/// each remaining lane.
template <bool kSquare, typename VectorF, typename SingleF>
[[gnu::always_inline]] inline void forEachOutput(const Plane& p, VectorF vector, SingleF single) {
  std::int64_t offset = 0;
  for (std::int64_t oh = 0; oh < p.outHeight; ++oh)
    for (std::int64_t ow = 0; ow < p.outWidth; ++ow, offset += p.lanes) {
      const Window window = windowAt<kSquare>(p, oh, ow);
      std::int64_t lane = 0;
      for (; lane + kLanes <= p.lanes; lane += kLanes) vector(window, offset + lane, lane);
      for (; lane < p.lanes; ++lane) single(window, offset + lane, lane);
    }
}

/// Takes `value` if it is larger than the best so far, or the first NaN.
template <typename Floats, typename Places>
[[gnu::always_inline]] inline void takeIfLarger(Floats& best, Places& winner, const Floats& value,
                                                std::int32_t place) {
  const Places larger = ~(value <= best) & (best == best);
  best = larger ? value : best;
  winner = larger ? Places{} + place : winner;
}

template <typename Lanes, typename Index>
[[gnu::always_inline]] inline void maxAt(const Plane& p, const Window& w, const float* x, float* y,
                                         Index* winners) {
  using Places = typename Lanes::Ints;
  typename Lanes::Floats best, value;
  // Start with the first pixel instead of minus infinity.
  Lanes::load(best, x + ((w.row + w.rowBegin) * p.width + w.column + w.columnBegin) * p.lanes);
  Places winner = Places{} + static_cast<std::int32_t>(w.rowBegin * p.kernel[1] + w.columnBegin);
  forEachPixel(
      p, w, [&](std::int32_t place, std::int64_t pixel) __attribute__((always_inline)) {
        Lanes::load(value, x + pixel);
        takeIfLarger(best, winner, value, place);
      });
  Lanes::store(best, y);
  Lanes::storePlaces(winner, winners);
}

template <bool kSquare, typename Index>
void maxForwardOf(const Plane& plane, const float* x, float* y, Index* winners) {
  const Plane p = known<kSquare>(plane);
  forEachOutput<kSquare>(
      p,
      [&](const Window& w, std::int64_t out, std::int64_t lane)
          __attribute__((always_inline)) { maxAt<Whole>(p, w, x + lane, y + out, winners + out); },
      [&](const Window& w, std::int64_t out, std::int64_t lane)
          __attribute__((always_inline)) { maxAt<One>(p, w, x + lane, y + out, winners + out); });
}

/// Whether four adjacent outputs are computed together, because there are no other lanes.
inline bool isInFours(const Plane& p) {
  return isSquare(p) && p.lanes == 1 && p.stride[0] >= 2 && p.stride[1] == 2;
}

inline void maxForwardInFours(const Plane& plane, const float* x, float* y, std::uint8_t* winners) {
  const Plane p = known<true>(plane);
  for (std::int64_t oh = 0; oh < p.outHeight; ++oh) {
    const std::int64_t row = oh * p.outWidth;
    std::int64_t ow = 0;
    for (; ow + 4 <= p.outWidth; ow += 4) {
      One::Floats pixels[4];  // [place]
      for (std::int64_t r = 0; r < 2; ++r) {
        One::Floats left, right;
        const float* from = x + (oh * p.stride[0] + r) * p.width + 2 * ow;
        std::memcpy(&left, from, sizeof left);
        std::memcpy(&right, from + 4, sizeof right);
        pixels[2 * r] = __builtin_shufflevector(left, right, 0, 2, 4, 6);
        pixels[2 * r + 1] = __builtin_shufflevector(left, right, 1, 3, 5, 7);
      }
      One::Ints winner{};
      for (std::int32_t place = 1; place < 4; ++place) takeIfLarger(pixels[0], winner, pixels[place], place);
      std::memcpy(y + row + ow, pixels, sizeof *pixels);
      const FourBytes places = __builtin_convertvector(winner, FourBytes);
      std::memcpy(winners + row + ow, &places, sizeof places);
    }
    for (; ow < p.outWidth; ++ow)
      maxAt<One>(p, windowAt<true>(p, oh, ow), x, y + row + ow, winners + row + ow);
  }
}

template <typename Index>
void maxForward(const Plane& plane, const float* x, float* y, Index* winners) {
  if constexpr (sizeof(Index) == 1)
    if (isInFours(plane)) return maxForwardInFours(plane, x, y, winners);
  isSquare(plane) ? maxForwardOf<true>(plane, x, y, winners) : maxForwardOf<false>(plane, x, y, winners);
}

/// @tparam kSquare  also requires that no windows overlap.
template <bool kSquare, typename Index>
void maxBackwardOf(const Plane& plane, const float* gradY, const Index* winners, float* gradX) {
  const Plane p = known<kSquare>(plane);
  forEachOutput<kSquare>(
      p,
      [&](const Window& w, std::int64_t out, std::int64_t lane) __attribute__((always_inline)) {
        Whole::Floats grad, sum;
        Whole::Ints winner;
        Whole::load(grad, gradY + out);
        Whole::loadPlaces(winner, winners + out);
        forEachPixel(
            p, w, [&](std::int32_t place, std::int64_t pixel) __attribute__((always_inline)) {
              sum = Whole::Floats{};
              if (!kSquare) Whole::load(sum, gradX + pixel + lane);
              sum += winner == place ? grad : Whole::Floats{};
              Whole::store(sum, gradX + pixel + lane);
            });
      },
      [&](const Window& w, std::int64_t out, std::int64_t lane) __attribute__((always_inline)) {
        const std::int64_t place = winners[out];
        const std::int64_t row = w.row + place / p.kernel[1], column = w.column + place % p.kernel[1];
        gradX[(row * p.width + column) * p.lanes + lane] += gradY[out];
      });
}

inline void maxBackwardInFours(const Plane& plane, const float* gradY, const std::uint8_t* winners,
                               float* gradX) {
  using Ints = One::Ints;
  const Plane p = known<true>(plane);
  for (std::int64_t oh = 0; oh < p.outHeight; ++oh, gradY += p.outWidth, winners += p.outWidth) {
    float* to = gradX + oh * p.stride[0] * p.width;
    std::int64_t ow = 0;
    for (; ow + 4 <= p.outWidth; ow += 4) {
      One::Floats grad;
      FourBytes places;
      std::memcpy(&grad, gradY + ow, sizeof grad);
      std::memcpy(&places, winners + ow, sizeof places);
      const Ints winner = __builtin_convertvector(places, Ints);
      for (std::int32_t r = 0; r < 2; ++r) {
        const Ints place{2 * r, 2 * r + 1, 2 * r, 2 * r + 1};
        // The sum with 0 makes -0 a 0, as in the other loops.
        const One::Floats left = One::Floats{} + (__builtin_shufflevector(winner, winner, 0, 0, 1, 1) == place
                                                      ? __builtin_shufflevector(grad, grad, 0, 0, 1, 1)
                                                      : One::Floats{});
        const One::Floats right =
            One::Floats{} + (__builtin_shufflevector(winner, winner, 2, 2, 3, 3) == place
                                 ? __builtin_shufflevector(grad, grad, 2, 2, 3, 3)
                                 : One::Floats{});
        std::memcpy(to + r * p.width + 2 * ow, &left, sizeof left);
        std::memcpy(to + r * p.width + 2 * ow + 4, &right, sizeof right);
      }
    }
    for (; ow < p.outWidth; ++ow) to[winners[ow] / 2 * p.width + 2 * ow + winners[ow] % 2] += gradY[ow];
  }
}

template <typename Index>
void maxBackward(const Plane& plane, const float* gradY, const Index* winners, float* gradX) {
  if constexpr (sizeof(Index) == 1)
    if (isInFours(plane)) return maxBackwardInFours(plane, gradY, winners, gradX);
  isSquare(plane) && plane.stride[0] >= 2 && plane.stride[1] >= 2
      ? maxBackwardOf<true>(plane, gradY, winners, gradX)
      : maxBackwardOf<false>(plane, gradY, winners, gradX);
}

/// An average's divisor: all kernel positions, including those on the padding.
[[gnu::always_inline]] inline float places(const Plane& p) {
  return static_cast<float>(p.kernel[0] * p.kernel[1]);
}

template <typename Lanes>
[[gnu::always_inline]] inline void averageAt(const Plane& p, const Window& w, const float* x, float* y) {
  typename Lanes::Floats sum{}, value;
  forEachPixel(
      p, w, [&](std::int32_t, std::int64_t pixel) __attribute__((always_inline)) {
        Lanes::load(value, x + pixel);
        sum += value;
      });
  sum /= places(p);
  Lanes::store(sum, y);
}

void averageForward(const Plane& plane, const float* x, float* y) {
  const Plane p = known<false>(plane);
  forEachOutput<false>(
      p,
      [&](const Window& w, std::int64_t out, std::int64_t lane)
          __attribute__((always_inline)) { averageAt<Whole>(p, w, x + lane, y + out); },
      [&](const Window& w, std::int64_t out, std::int64_t lane)
          __attribute__((always_inline)) { averageAt<One>(p, w, x + lane, y + out); });
}

template <typename Lanes>
[[gnu::always_inline]] inline void spreadAt(const Plane& p, const Window& w, const float* gradY,
                                            float* gradX) {
  typename Lanes::Floats share, sum;
  Lanes::load(share, gradY);
  share /= places(p);
  forEachPixel(
      p, w, [&](std::int32_t, std::int64_t pixel) __attribute__((always_inline)) {
        Lanes::load(sum, gradX + pixel);
        sum += share;
        Lanes::store(sum, gradX + pixel);
      });
}

void averageBackward(const Plane& plane, const float* gradY, float* gradX) {
  const Plane p = known<false>(plane);
  forEachOutput<false>(
      p,
      [&](const Window& w, std::int64_t out, std::int64_t lane)
          __attribute__((always_inline)) { spreadAt<Whole>(p, w, gradY + out, gradX + lane); },
      [&](const Window& w, std::int64_t out, std::int64_t lane)
          __attribute__((always_inline)) { spreadAt<One>(p, w, gradY + out, gradX + lane); });
}

constexpr Kernels kKernels{.maxOfFew = {maxForward<std::uint8_t>, maxBackward<std::uint8_t>},
                           .maxOfMany = {maxForward<std::int32_t>, maxBackward<std::int32_t>},
                           .average = {averageForward, averageBackward}};

}  // namespace
}  // namespace muster::cpu::pool
