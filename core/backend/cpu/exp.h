#pragma once

#include <bit>
#include <cstdint>

namespace muster::cpu {

// Elementary functions without branches or calls, so that `dispatch` vectorises loops over them. Accurate to
// about two units in the last place; NaN stays NaN. Polynomials: Moshier's Cephes library (expf, tanhf).

/// e^x for x <= 0; 0 below -87.3, where the true value is nearly denormal.
[[gnu::always_inline]] inline float expOfNegative(float x) {
  constexpr float kLowest = -87.3f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
  const float clamped = x < kLowest ? kLowest : x;
  const float shifted = clamped * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = clamped - n * 0.693359375f + n * 2.12194440e-4f;  // ln 2 in two parts
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRound);
  const float power = std::bit_cast<float>((exponent + 127u) << 23);  // 2^n
  const float value = (p * r * r + r + 1.0f) * power;
  return x < kLowest ? 0.0f : value;
}

[[gnu::always_inline]] inline float sigmoid(float x) {
  const float e = expOfNegative(x < 0.0f ? x : -x);
  const float above = 1.0f / (1.0f + e);  // of |x|
  return x < 0.0f ? e * above : above;
}

[[gnu::always_inline]] inline float tanh(float x) {
  const float e = expOfNegative(x < 0.0f ? 2.0f * x : -2.0f * x);
  const float far = (1.0f - e) / (1.0f + e);  // of |x|
  const float z = x * x;                      // near 0 the difference above loses all digits
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float near = x + x * z * p;
  return z < 0.390625f ? near : (x < 0.0f ? -far : far);
}

}  // namespace muster::cpu
