#pragma once

#include <bit>
#include <cstdint>

namespace muster::cpu {

// Elementary functions without branches or calls, so that `dispatch` vectorises loops over them, if the file
// is compiled with -fno-trapping-math. Accurate to about two units in the last place; NaN stays NaN.
// Polynomials come from Moshier's Cephes library (expf, tanhf) unless noted.

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

/// e^x for x <= 0 in float64; 0 below -708. Taylor polynomial up to r^11, with a relative error below 7e-15.
[[gnu::always_inline]] inline double expOfNegative(double x) {
  constexpr double kLowest = -708;
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
  const double clamped = x < kLowest ? kLowest : x;
  const double shifted = clamped * 1.4426950408889634 + kRound;
  const double n = shifted - kRound;
  const double r = clamped - n * 0x1.62e42fee00000p-1 - n * 0x1.a39ef35793c76p-33;  // ln 2 in two parts
  double p = 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  const std::uint64_t exponent = std::bit_cast<std::uint64_t>(shifted) - std::bit_cast<std::uint64_t>(kRound);
  const double power = std::bit_cast<double>((exponent + 1023u) << 52);  // 2^n
  const double value = (p * r * r + r + 1.0) * power;
  return x < kLowest ? 0.0 : value;
}

/// The standard normal distribution: exp(-x^2 / 2), and the probability of a value below x.
struct Normal {
  float bell, below;
};

/// The probability of a value below -|x| is bell * t q(t) with t = 1 / (1 + 0.21 |x|) and q of degree 8,
/// fitted by weighted least squares; the relative error in float32 is at most 2e-7.
[[gnu::always_inline]] inline Normal normalAt(float x) {
  const float bell = expOfNegative(-0.5f * x * x);
  const float t = 1.0f / (1.0f + 0.21f * (x < 0.0f ? -x : x));
  float q = -7.218341529e-2f;
  q = q * t + 2.861953378e-1f;
  q = q * t - 3.357659280e-1f;
  q = q * t + 3.559028208e-1f;
  q = q * t - 9.859701246e-2f;
  q = q * t + 1.269642413e-1f;
  q = q * t + 6.862307340e-2f;
  q = q * t + 8.515483141e-2f;
  q = q * t + 8.370605856e-2f;
  const float tail = bell * (t * q);
  return {bell, x < 0.0f ? tail : 1.0f - tail};
}

[[gnu::always_inline]] inline float sigmoid(float x) {
  const float e = expOfNegative(x < 0.0f ? x : -x);
  const float above = 1.0f / (1.0f + e);  // sigmoid(|x|)
  return x < 0.0f ? e * above : above;
}

[[gnu::always_inline]] inline float tanh(float x) {
  const float e = expOfNegative(x < 0.0f ? 2.0f * x : -2.0f * x);
  const float far = (1.0f - e) / (1.0f + e);  // tanh(|x|), inaccurate near 0
  const float z = x * x;                      // for the polynomial used near 0
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float near = x + x * z * p;
  return z < 0.390625f ? near : (x < 0.0f ? -far : far);
}

}  // namespace muster::cpu
