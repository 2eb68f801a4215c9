#pragma once

// For files compiled for one instruction set each: everything is in an unnamed namespace, so each file keeps
// its own code.

namespace muster::cpu::winograd {
namespace {

template <int Lanes>
struct VectorOf;
template <>
struct VectorOf<16> {
  typedef float type __attribute__((vector_size(64)));
  typedef float anywhere __attribute__((vector_size(64), aligned(4)));
  static constexpr int kRows = 14;  // rows of products that a tile of registers holds
};
template <>
struct VectorOf<8> {
  typedef float type __attribute__((vector_size(32)));
  typedef float anywhere __attribute__((vector_size(32), aligned(4)));
  static constexpr int kRows = 6;
};

/// Vectors of `Lanes` floats, which may lie anywhere: a bias may start at any parameter.
template <int Lanes>
struct Vectors {
  using V = typename VectorOf<Lanes>::type;
  using Anywhere = typename VectorOf<Lanes>::anywhere;

  static V load(const float* p) { return *reinterpret_cast<const Anywhere*>(p); }
  static void store(float* p, V v) { *reinterpret_cast<Anywhere*>(p) = v; }
};

}  // namespace
}  // namespace muster::cpu::winograd
