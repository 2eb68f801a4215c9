#pragma once

#include <cstring>
#include <type_traits>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

// Groups of lanes for the loops of batch normalisation: sixteen or eight (one vector, see kMany), four or
// one. Vectors are passed by reference, because passing them by value differs between instruction sets.

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

/// Fetches the memory 1 KiB after `at`. With AVX2 the processor alone does so too late for rows of many
/// channels; with AVX-512 on Zen 5 this gains nothing.
[[gnu::always_inline]] inline void prefetch([[maybe_unused]] const float* at) {
#if !defined(__AVX512F__)
  __builtin_prefetch(at + 256);
#endif
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

}  // namespace
}  // namespace muster::cpu::norm
