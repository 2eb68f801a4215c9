#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace muster {

/// Two sizes of an image or a window: along its height and its width. One number is both: `.kernel = 3`.
struct Size2d : std::array<std::int64_t, 2> {
  constexpr Size2d(std::int64_t both)  // NOLINT(google-explicit-constructor): a number is a size
      : array{both, both} {}
  constexpr Size2d(std::int64_t height, std::int64_t width) : array{height, width} {}
  constexpr Size2d(const std::array<std::int64_t, 2>& sizes)  // NOLINT(google-explicit-constructor)
      : array(sizes) {}
};

/// Rows or columns on the four sides of an image: top, bottom, left, right. One number is all four.
struct Padding2d : std::array<std::int64_t, 4> {
  constexpr Padding2d(std::int64_t all)  // NOLINT(google-explicit-constructor): a number is a padding
      : array{all, all, all, all} {}
  constexpr Padding2d(std::int64_t top, std::int64_t bottom, std::int64_t left, std::int64_t right)
      : array{top, bottom, left, right} {}
};

}  // namespace muster

// For structured bindings: auto [top, bottom, left, right] = padding.
template <>
struct std::tuple_size<muster::Size2d> : std::tuple_size<std::array<std::int64_t, 2>> {};
template <std::size_t I>
struct std::tuple_element<I, muster::Size2d> : std::tuple_element<I, std::array<std::int64_t, 2>> {};
template <>
struct std::tuple_size<muster::Padding2d> : std::tuple_size<std::array<std::int64_t, 4>> {};
template <std::size_t I>
struct std::tuple_element<I, muster::Padding2d> : std::tuple_element<I, std::array<std::int64_t, 4>> {};
