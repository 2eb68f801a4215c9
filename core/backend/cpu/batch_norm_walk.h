#pragma once

#include "muster/core/backend/cpu/batch_norm_groups.h"
#include "muster/core/backend/cpu/batch_norm_kernels.h"

// How the loops of batch normalisation visit a unit. One with a channel in each lane is visited in the order
// of its memory, all lanes of a few positions before the next ones, because the processor fetches memory
// ahead only in order.

namespace muster::cpu::norm {
namespace {

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

constexpr std::int64_t kFew = 32;  // positions whose sums are in float32

constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

/// Positions whose lanes are visited before the next positions: as many as have 1 KiB, but an even number
/// that divides kFew.
inline std::int64_t tilePositions(const Unit& u) {
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
    const std::int64_t tile = tilePositions(u);
    for (std::int64_t p = 0; p < u.positions; p += tile) {
      const std::int64_t n = smaller(tile, u.positions - p);
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

  /// Calls f(i, first, second), which adds position i, for i = 0 .. n - 1. n must be even but in the
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

/// Sums up a unit in parts of kFew positions: calls terms(column, origin, partial sums), which adds the
/// column's positions, then finish(column, origin, number of the part's positions, partial sums). `origin` is
/// the offset of the part's first position.
template <bool kRuns, typename Terms, typename Finish>
[[gnu::always_inline]] inline void sumInParts(const Unit& u, Terms terms, Finish finish) {
  if constexpr (kRuns) {
    forEachColumnOfRun(
        u, [&]<typename Group>(Group, const Column& c) __attribute__((always_inline)) {
          for (std::int64_t begin = 0; begin < c.positions; begin += kFew) {
            const std::int64_t n = smaller(kFew, c.positions - begin), origin = c.offset + begin * c.stride;
            const Column part{origin, n, c.stride, c.lane};
            Partial<Group> partial;
            terms(part, origin, partial);
            partial.join();
            finish(part, origin, n, partial);
          }
        });
  } else {
    constexpr std::int64_t kStrip = 512;  // lanes whose partial sums stay in the first cache
    const std::int64_t tile = tilePositions(u);
    float partials[4 * kStrip];  // between two tiles of a part
    for (std::int64_t strip = 0; strip < u.lanes; strip += kStrip)
      for (std::int64_t begin = 0; begin < u.positions; begin += kFew) {
        const std::int64_t n = smaller(kFew, u.positions - begin);
        for (std::int64_t p = 0; p < n; p += tile) {
          const bool last = p + tile >= n;
          forEachGroup(
              smaller(kStrip, u.lanes - strip), [&]<typename Group>(
                                                    Group, std::int64_t lane) __attribute__((always_inline)) {
                const std::int64_t origin = begin * u.lanes + strip + lane;
                const Column column{origin + p * u.lanes, smaller(tile, n - p), u.lanes, strip + lane};
                Partial<Group> partial;
                if (p > 0) partial.load(partials + 4 * lane);
                terms(column, origin, partial);
                if (!last) return partial.store(partials + 4 * lane);
                partial.join();
                finish(column, origin, n, partial);
              });
        }
      }
  }
}

}  // namespace
}  // namespace muster::cpu::norm
