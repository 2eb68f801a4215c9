#pragma once

#include <cstring>
#include <type_traits>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "muster/core/backend/cpu/batch_norm_kernels.h"

// The loops of batch normalisation; the file of each instruction set includes them once. Lanes are taken
// sixteen or eight at a time (one vector, see kMany), then four, then one. Vectors are passed by reference,
// because passing them by value differs between instruction sets.
//
// A unit with a channel in each lane is visited in the order of its memory, all lanes of a few positions
// before the next ones, because the processor fetches memory ahead only in order.
//
// Sums are in float32 over kFew positions, and these partial sums are added in float64. Sums of x use its
// distance from the first of the kFew, so a large mean costs the variance no digits.

namespace muster::cpu::norm {
namespace {

#if defined(__AVX512F__)
constexpr int kPart = 8, kMany = 16;
#elif defined(__AVX2__)
// GCC compares vectors that are wider than a register lane by lane, and the registers do not hold the
// constants and sums of sixteen lanes.
constexpr int kPart = 4, kMany = 8;
#else
constexpr int kPart = 4, kMany = 16;
#endif

using Floats = float __attribute__((vector_size(4 * kMany)));
using FourFloats = float __attribute__((vector_size(16)));
using FourDoubles = double __attribute__((vector_size(32)));
using PartFloats = float __attribute__((vector_size(4 * kPart)));
using PartDoubles = double __attribute__((vector_size(8 * kPart)));

template <typename Value, typename T>
[[gnu::always_inline]] inline void copyIn(Value& to, const T* from) {
  std::memcpy(&to, from, sizeof to);
}
template <typename Value, typename T>
[[gnu::always_inline]] inline void copyOut(const Value& from, T* to) {
  std::memcpy(to, &from, sizeof from);
}

/// The vector with as many doubles as `Value` has floats.
template <typename Value>
using WideOf = std::conditional_t<sizeof(Value) == sizeof(FourFloats), FourDoubles, PartDoubles>;

// GCC converts vectors in halves without these intrinsics.
[[gnu::always_inline]] inline void widen(FourDoubles& to, const FourFloats& from) {
#if defined(__AVX2__)
  to = _mm256_cvtps_pd(from);
#else
  to = __builtin_convertvector(from, FourDoubles);
#endif
}
#if defined(__AVX512F__)
[[gnu::always_inline]] inline void widen(PartDoubles& to, const PartFloats& from) {
  to = _mm512_maskz_cvtps_pd(0xff, from);  // GCC warns about undefined values in the unmasked intrinsic
}
#endif

template <typename Wide>
[[gnu::always_inline]] inline void addVector(double* sums, const Wide& sum) {
  Wide total;
  copyIn(total, sums);
  total += sum;
  copyOut(total, sums);
}

/// `kMany` lanes processed together. Sums are added to float64 sums in parts of one register.
struct Many {
  using Value = Floats;
  static constexpr int kLanes = kMany;
  [[gnu::always_inline]] static void load(Value& to, const float* from) { copyIn(to, from); }
  [[gnu::always_inline]] static void store(const Value& from, float* to) { copyOut(from, to); }
  /// Calls f(first lane, PartFloats or FourFloats of each value) for each part.
  template <typename F, typename... Values>
  [[gnu::always_inline]] static void forEachPart(F f, const Values&... values) {
    forPartsFrom<0>(f, values...);
  }

 private:
  template <int lane, typename F, typename... Values>
  [[gnu::always_inline]] static void forPartsFrom(F& f, const Values&... values) {
    if constexpr (lane < kLanes) {
      f(lane, partAt<lane>(values)...);
      forPartsFrom<lane + kPart>(f, values...);
    }
  }
  template <int lane>
  [[gnu::always_inline]] static PartFloats partAt(const Value& value) {
    PartFloats part;
    std::memcpy(&part, reinterpret_cast<const char*>(&value) + lane * sizeof(float), sizeof part);
    return part;
  }
};

struct Four {
  using Value = FourFloats;
  static constexpr int kLanes = 4;
  [[gnu::always_inline]] static void load(Value& to, const float* from) { copyIn(to, from); }
  [[gnu::always_inline]] static void store(const Value& from, float* to) { copyOut(from, to); }
  template <typename F, typename... Values>
  [[gnu::always_inline]] static void forEachPart(F f, const Values&... values) {
    f(0, values...);
  }
};

/// Uses lane 0 of a small vector, so that the compiler does not turn comparisons into branches.
struct One {
  using Value = FourFloats;
  static constexpr int kLanes = 1;
  [[gnu::always_inline]] static void load(Value& to, const float* from) { to = Value{*from, 0, 0, 0}; }
  [[gnu::always_inline]] static void store(const Value& from, float* to) { *to = from[0]; }
  template <typename F, typename... Values>
  [[gnu::always_inline]] static void forEachPart(F f, const Values&... values) {
    f(0, values...);
  }
};

/// A column of memory: `positions` groups of lanes, `stride` floats apart, from `offset`. Its constants and
/// sums begin at `lane`.
struct Column {
  std::int64_t offset, positions, stride, lane;
};

/// Loads channel constants: one for each lane, or in runs the same one for all lanes.
template <typename Group, bool kRuns, typename V>
[[gnu::always_inline]] inline void constant(V& to, const float* from, const Column& column) {
  if constexpr (kRuns)
    to = V{} + *from;
  else
    Group::load(to, from + column.lane);
}

/// Calls f(group, lane) for groups of lanes that cover [0, count).
template <typename F>
[[gnu::always_inline]] inline void forEachGroup(std::int64_t count, F f) {
  std::int64_t lane = 0;
  for (; lane + 16 <= count; lane += 16)
    for (int part = 0; part < 16; part += kMany) f(Many{}, lane + part);
  for (; lane + 4 <= count; lane += 4) f(Four{}, lane);
  for (; lane < count; ++lane) f(One{}, lane);
}

/// Calls f(group, column) for columns that cover a run. Each of sixteen lanes has its own sums, so the bits
/// do not depend on `kMany`.
template <typename F>
[[gnu::always_inline]] inline void forEachColumnOfRun(const Unit& u, F f) {
  const std::int64_t sixteens = u.positions / 16, fours = u.positions % 16 / 4, ones = u.positions % 4;
  if (sixteens > 0)
    for (int lane = 0; lane < 16; lane += kMany) f(Many{}, Column{lane, sixteens, 16, lane});
  if (fours > 0) f(Four{}, Column{sixteens * 16, fours, 4, 0});
  if (ones > 0) f(One{}, Column{u.positions - ones, ones, 1, 0});
}

constexpr std::int64_t kFew = 32;

/// Positions whose lanes are visited before the next positions: an even number that divides kFew.
inline std::int64_t togetherOf(const Unit& u) {
  constexpr std::int64_t kTile = 256;  // floats
  std::int64_t positions = 2;
  while (positions < kFew && 2 * positions * u.lanes <= kTile) positions *= 2;
  return positions;
}

/// Calls f(group, column) for columns that cover the unit.
template <bool kRuns, typename F>
[[gnu::always_inline]] inline void forEachColumn(const Unit& u, F f) {
  if constexpr (kRuns) {
    forEachColumnOfRun(u, f);
  } else {
    const std::int64_t together = togetherOf(u);
    for (std::int64_t p = 0; p < u.positions; p += together) {
      const std::int64_t n = u.positions - p < together ? u.positions - p : together;
      forEachGroup(
          u.lanes, [&]<typename Group>(Group group, std::int64_t lane) __attribute__((always_inline)) {
            f(group, Column{p * u.lanes + lane, n, u.lanes, lane});
          });
    }
  }
}

/// Adds to float64 sums: one sum if `kSingle`, else as many as `sum` has lanes.
template <bool kSingle, typename Wide>
[[gnu::always_inline]] inline void addTo(double* sums, const Wide& sum) {
  if constexpr (kSingle)
    *sums += sum[0];
  else
    addVector(sums, sum);
}

/// Collects a unit's sums; in runs sixteen partial sums, which are added in a fixed order at the end.
template <bool kRuns>
struct Target {
  Target(double* firsts, double* seconds) : first(firsts), second(seconds) {}
  void finish() {}
  double *first, *second;
};
template <>
struct Target<true> {
  Target(double* firstSum, double* secondSum) : toFirst(firstSum), toSecond(secondSum) {}
  void finish() {
    for (int half = 8; half > 0; half /= 2)
      for (int lane = 0; lane < half; ++lane) {
        first[lane] += first[lane + half];
        second[lane] += second[lane + half];
      }
    *toFirst += first[0];
    *toSecond += second[0];
  }
  double *toFirst, *toSecond;
  double first[16]{}, second[16]{};
};

/// Two float32 sums over a few positions. Two pairs of sums alternate, so that an addition need not wait for
/// the previous one.
template <typename Group>
struct Partial {
  using Value = typename Group::Value;
  Value first{}, second{}, otherFirst{}, otherSecond{};

  /// Calls f(i, first, second), which adds position i, for i = 0 .. n - 1. Call it with an even n but for the
  /// last call.
  template <typename F>
  [[gnu::always_inline]] void add(std::int64_t n, F f) {
    std::int64_t i = 0;
    for (; i + 2 <= n; i += 2) {
      f(i, first, second);
      f(i + 1, otherFirst, otherSecond);
    }
    if (i < n) f(i, first, second);
  }
  [[gnu::always_inline]] void join() {
    first += otherFirst;
    second += otherSecond;
  }
  [[gnu::always_inline]] void load(const float* from) {
    Group::load(first, from);
    Group::load(second, from + Group::kLanes);
    Group::load(otherFirst, from + 2 * Group::kLanes);
    Group::load(otherSecond, from + 3 * Group::kLanes);
  }
  [[gnu::always_inline]] void store(float* to) const {
    Group::store(first, to);
    Group::store(second, to + Group::kLanes);
    Group::store(otherFirst, to + 2 * Group::kLanes);
    Group::store(otherSecond, to + 3 * Group::kLanes);
  }
};

/// Sums over kFew positions at a time: calls terms(column, origin, partial sums), which adds the column's
/// positions, then finish(column, origin, number of positions, partial sums). `origin` is the offset of the
/// first of the few positions.
template <bool kRuns, typename Terms, typename Finish>
[[gnu::always_inline]] inline void sumFew(const Unit& u, Terms terms, Finish finish) {
  const auto fewFrom = [&](std::int64_t begin, std::int64_t positions) __attribute__((always_inline)) {
    return positions - begin < kFew ? positions - begin : kFew;
  };
  if constexpr (kRuns) {
    forEachColumnOfRun(
        u, [&]<typename Group>(Group, const Column& c) __attribute__((always_inline)) {
          for (std::int64_t begin = 0; begin < c.positions; begin += kFew) {
            const std::int64_t n = fewFrom(begin, c.positions), origin = c.offset + begin * c.stride;
            const Column few{origin, n, c.stride, c.lane};
            Partial<Group> partial;
            terms(few, origin, partial);
            partial.join();
            finish(few, origin, n, partial);
          }
        });
  } else {
    constexpr std::int64_t kStrip = 512;  // lanes whose partial sums stay in the first cache
    const std::int64_t together = togetherOf(u);
    float kept[4 * kStrip];
    for (std::int64_t strip = 0; strip < u.lanes; strip += kStrip)
      for (std::int64_t begin = 0; begin < u.positions; begin += kFew) {
        const std::int64_t n = fewFrom(begin, u.positions);
        for (std::int64_t some = 0; some < n; some += together) {
          const bool last = some + together >= n;
          const std::int64_t positions = last ? n - some : together;
          forEachGroup(
              u.lanes - strip < kStrip ? u.lanes - strip : kStrip,
              [&]<typename Group>(Group, std::int64_t lane) __attribute__((always_inline)) {
                const std::int64_t origin = begin * u.lanes + strip + lane;
                const Column column{origin + some * u.lanes, positions, u.lanes, strip + lane};
                Partial<Group> partial;
                if (some > 0) partial.load(kept + 4 * lane);
                terms(column, origin, partial);
                if (!last) return partial.store(kept + 4 * lane);
                partial.join();
                finish(column, origin, n, partial);
              });
        }
      }
  }
}

template <bool kRuns>
void sums(const Unit& unit, const float* x, double* sum, double* squares) {
  const Unit u = unit;  // a copy, which the compiler knows writes cannot change
  Target<kRuns> target(sum, squares);
  sumFew<kRuns>(
      u,
      [&]<typename Group>(const Column& c, std::int64_t origin, Partial<Group>& partial)
          __attribute__((always_inline)) {
            using Value = typename Group::Value;
            Value first;
            Group::load(first, x + origin);
            partial.add(
                c.positions, [&](std::int64_t i, Value & s, Value & q) __attribute__((always_inline)) {
                  Value value;
                  Group::load(value, x + c.offset + i * c.stride);
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
  sumFew<kRuns>(
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
                  Group::load(centred, x + c.offset + i * c.stride);
                  Group::load(g, gradY + c.offset + i * c.stride);
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
