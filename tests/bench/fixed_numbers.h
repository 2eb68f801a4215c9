#pragma once

#include <cmath>
#include <cstdint>

// Numbers that muster's and libtorch's programs both compute, so that their networks and images are the same.

namespace muster::bench {

/// Number `i` of a fixed sequence in [0, 1).
inline float fixedNumber(std::uint64_t i) {
  std::uint64_t bits = (i + 1) * 0x9e3779b97f4a7c15U;
  bits ^= bits >> 29;
  bits *= 0xbf58476d1ce4e5b9U;
  return static_cast<float>(bits >> 40) / static_cast<float>(1 << 24);
}

/// Writes weights [outputs, ...], row-major, that keep the size of numbers from layer to layer, or small
/// biases [outputs].
inline void fillParameters(float* values, std::int64_t elements, std::int64_t outputs) {
  const bool biases = elements == outputs;
  const float limit =
      biases ? 0.1f : std::sqrt(3.0f * static_cast<float>(outputs) / static_cast<float>(elements));
  for (std::int64_t i = 0; i < elements; ++i)  // from `elements` on, so that layers differ
    values[i] = limit * (2 * fixedNumber(static_cast<std::uint64_t>(elements + i)) - 1);
}

}  // namespace muster::bench
