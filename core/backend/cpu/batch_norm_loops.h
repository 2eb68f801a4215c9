#pragma once

#include <type_traits>

#include "muster/core/backend/cpu/batch_norm_kernels.h"
#include "muster/core/backend/cpu/batch_norm_walk.h"

// The loops of batch normalisation; the file of each instruction set includes them once.
//
// Sums are in float32 over kFew positions, and these partial sums are added in float64. Sums of x use its
// distance from the first of the kFew, so a large mean costs the variance no digits.

namespace muster::cpu::norm {
namespace {

template <bool kRuns>
void sums(const Unit& unit, const float* x, double* sum, double* squares) {
  const Unit u = unit;  // a copy, which the compiler knows writes cannot change
  Target<kRuns> target(sum, squares);
  sumInParts<kRuns>(
      u,
      [&]<typename Group>(const Column& c, std::int64_t origin, Partial<Group>& partial)
          __attribute__((always_inline)) {
            using Value = typename Group::Value;
            Value first;
            Group::load(first, x + origin);
            partial.add(
                c.positions, [&](std::int64_t i, Value & s, Value & q) __attribute__((always_inline)) {
                  Value value;
                  const std::int64_t at = c.offset + i * c.stride;
                  prefetch(x + at);
                  Group::load(value, x + at);
                  value -= first;
                  s += value;
                  q += value * value;
                });
          },
      [&]<typename Group>(const Column& c, std::int64_t origin, std::int64_t n, const Partial<Group>& partial)
          __attribute__((always_inline)) {
            typename Group::Value first;
            Group::load(first, x + origin);
            // About the origin o: sum x = n o + s and sum x^2 = n o^2 + 2 o s + q.
            const auto add = [&](int lane, const auto& o, const auto& s, const auto& q)
                __attribute__((always_inline)) {
              WideOf<std::remove_cvref_t<decltype(o)>> wideO, wideS, wideQ;
              widen(wideO, o);
              widen(wideS, s);
              widen(wideQ, q);
              const auto total = wideO * static_cast<double>(n) + wideS;
              addTo<Group::kLanes == 1>(target.first + c.lane + lane, total);
              addTo<Group::kLanes == 1>(target.second + c.lane + lane, wideO * (total + wideS) + wideQ);
            };
            Group::forEachPart(add, first, partial.first, partial.second);
          });
  target.finish();
}

/// The normalised value before the activation. Both directions use this expression, so ReLU passes the
/// gradient exactly where it passed the value.
template <typename V>
[[gnu::always_inline]] inline void normalised(V& to, const V& centred, const V& scale, const V& shift) {
  to = centred * scale + shift;
}

template <bool kRuns, bool kRelu>
void normalise(const Unit& unit, const Affine& affine, const float* x, float* y) {
  const Unit u = unit;
  const Affine a = affine;
  forEachColumn<kRuns>(
      u, [&]<typename Group>(Group, const Column& c) __attribute__((always_inline)) {
        typename Group::Value mean, scale, shift, value;
        constant<Group, kRuns>(mean, a.mean, c);
        constant<Group, kRuns>(scale, a.scale, c);
        constant<Group, kRuns>(shift, a.shift, c);
        for (std::int64_t p = 0; p < c.positions; ++p) {
          const std::int64_t at = c.offset + p * c.stride;
          prefetch(x + at);
          prefetch(y + at);
          Group::load(value, x + at);
          value -= mean;
          normalised(value, value, scale, shift);
          if constexpr (kRelu) value = value < 0 ? typename Group::Value{} : value;  // keeps NaN
          Group::store(value, y + at);
        }
      });
}

template <bool kRuns, bool kRelu>
void gradientSums(const Unit& unit, const Affine& affine, const float* x, const float* gradY, double* sum,
                  double* products) {
  const Unit u = unit;
  const Affine a = affine;
  Target<kRuns> target(sum, products);
  sumInParts<kRuns>(
      u,
      [&]<typename Group>(const Column& c, std::int64_t, Partial<Group>& partial)
          __attribute__((always_inline)) {
            using Value = typename Group::Value;
            Value mean, scale, shift;
            constant<Group, kRuns>(mean, a.mean, c);
            constant<Group, kRuns>(scale, a.scale, c);
            constant<Group, kRuns>(shift, a.shift, c);
            partial.add(
                c.positions, [&](std::int64_t i, Value & s, Value & q) __attribute__((always_inline)) {
                  Value centred, g;
                  const std::int64_t at = c.offset + i * c.stride;
                  prefetch(x + at);
                  prefetch(gradY + at);
                  Group::load(centred, x + at);
                  Group::load(g, gradY + at);
                  centred -= mean;
                  if constexpr (kRelu) {
                    Value value;
                    normalised(value, centred, scale, shift);
                    g = value > 0 ? g : Value{};
                  }
                  s += g;
                  q += g * centred;
                });
          },
      [&]<typename Group>(const Column& c, std::int64_t, std::int64_t, const Partial<Group>& partial)
          __attribute__((always_inline)) {
            const auto add = [&](int lane, const auto& s, const auto& q) __attribute__((always_inline)) {
              WideOf<std::remove_cvref_t<decltype(s)>> wideS, wideQ;
              widen(wideS, s);
              widen(wideQ, q);
              addTo<Group::kLanes == 1>(target.first + c.lane + lane, wideS);
              addTo<Group::kLanes == 1>(target.second + c.lane + lane, wideQ);
            };
            Group::forEachPart(add, partial.first, partial.second);
          });
  target.finish();
}

template <bool kRuns, bool kRelu>
void gradient(const Unit& unit, const GradientAffine& affine, const float* x, const float* gradY,
              float* gradX) {
  const Unit u = unit;
  const GradientAffine k = affine;
  forEachColumn<kRuns>(
      u, [&]<typename Group>(Group, const Column& column) __attribute__((always_inline)) {
        using Value = typename Group::Value;
        Value mean, scale, shift, a, b, c;
        constant<Group, kRuns>(mean, k.forward.mean, column);
        constant<Group, kRuns>(scale, k.forward.scale, column);
        constant<Group, kRuns>(shift, k.forward.shift, column);
        constant<Group, kRuns>(a, k.a, column);
        constant<Group, kRuns>(b, k.b, column);
        constant<Group, kRuns>(c, k.c, column);
        for (std::int64_t p = 0; p < column.positions; ++p) {
          const std::int64_t at = column.offset + p * column.stride;
          Value centred, g;
          prefetch(x + at);
          prefetch(gradY + at);
          Group::load(centred, x + at);
          Group::load(g, gradY + at);
          centred -= mean;
          if constexpr (kRelu) {
            Value value;
            normalised(value, centred, scale, shift);
            g = value > 0 ? g : Value{};
          }
          g = a * g + (b * centred + c);
          Group::store(g, gradX + at);
        }
      });
}

template <bool kRuns>
constexpr Kernels kernelsOf() {
  return {.sums = sums<kRuns>,
          .normalise = {normalise<kRuns, false>, normalise<kRuns, true>},
          .gradientSums = {gradientSums<kRuns, false>, gradientSums<kRuns, true>},
          .gradient = {gradient<kRuns, false>, gradient<kRuns, true>}};
}

constexpr KernelSet kKernels{.lanes = kernelsOf<false>(), .runs = kernelsOf<true>()};

}  // namespace
}  // namespace muster::cpu::norm
