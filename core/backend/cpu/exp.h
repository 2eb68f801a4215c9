#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace muster::cpu {

// Elementary functions without branches or calls, so that `dispatch` vectorises loops over them, if the file
// is compiled with -fno-trapping-math. Accurate to about two units in the last place; NaN stays NaN.
// Polynomials come from Moshier's Cephes library (expf, tanhf) unless noted.

/// e^x for x <= 0; 0 below -87.3, where the true value is nearly denormal.
[[gnu::always_inline]] inline float expOfNegative(float x) {
  constexpr float kLowest = -87.3f;
  // 1.5 * 2^23, which rounds to an integer in the low bits, and the bias of exponents.
  constexpr float kRound = 12582912.0f + 127;
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = x - n * 0.693359375f + n * 2.12194440e-4f;  // ln 2 in two parts
  const float r2 = r * r;
  const float low = 5.0000001201e-1f + 1.6666665459e-1f * r;
  const float middle = 4.1665795894e-2f + 8.3334519073e-3f * r;
  const float high = 1.3981999507e-3f + 1.9875691500e-4f * r;
  const float p = low + r2 * (middle + r2 * high);
  const float power = std::bit_cast<float>(std::bit_cast<std::uint32_t>(shifted) << 23);  // 2^n
  const float value = (p * r2 + r + 1.0f) * power;
  return x < kLowest ? 0.0f : value;
}

/// e^x of sixteen x <= 0 in float64, at least e^-708; e^0 is 1. Minimax polynomial of degree 10; with FMA the
/// relative error is below 5e-16 + 4e-17 |x|. Each step takes all sixteen numbers, because one number's steps
/// wait for each other.
[[gnu::always_inline]] inline void sixteenExpsOfNegative(const double* x, double* y) {
  constexpr int kCount = 16;
  constexpr double kLowest = -708;
  constexpr double kRound = 6755399441055744.0 + 1023;  // 1.5 * 2^52, and the bias of exponents
  constexpr double kPolynomial[] = {0x1.2707a5f7121c7p-22,
                                    0x1.72e9282b08ae6p-19,
                                    0x1.a01b7c691e095p-16,
                                    0x1.a0198d4cdf6f3p-13,
                                    0x1.6c16c0c81d400p-10,
                                    0x1.11111125b6f0fp-7,
                                    0x1.5555555589152p-5,
                                    0x1.55555555507b6p-3,
                                    0x1.ffffffffffed2p-2,
                                    1,
                                    1};
  double shifted[kCount], r[kCount], p[kCount];
  for (int i = 0; i < kCount; ++i) {
    const double clamped = x[i] < kLowest ? kLowest : x[i];
    shifted[i] = clamped * 1.4426950408889634 + kRound;
    r[i] = clamped - (shifted[i] - kRound) * 0x1.62e42fefa39efp-1;
    p[i] = kPolynomial[0];
  }
#pragma GCC unroll 10
  for (int c = 1; c <= 10; ++c)
    for (int i = 0; i < kCount; ++i) p[i] = p[i] * r[i] + kPolynomial[c];
  for (int i = 0; i < kCount; ++i)
    y[i] = p[i] * std::bit_cast<double>(std::bit_cast<std::uint64_t>(shifted[i]) << 52);  // p * 2^n
}

/// The standard normal distribution: exp(-x^2 / 2), and the probability of a value below x.
struct Normal {
  float bell, below;
};

/// The probability of a value below -|x| is bell * t q(t) with t = 1 / (1 + 0.21 |x|) and q of degree 8,
/// fitted by weighted least squares to 2e-7; with the roundings in float32 the relative error is below 8e-7 +
/// 3e-8 x^2.
[[gnu::always_inline]] inline Normal normalAt(float x) {
  const float bell = expOfNegative(-0.5f * x * x);
  const float t = 1.0f / (1.0f + 0.21f * std::fabs(x));
  const float t2 = t * t;
  float high = -7.218341529e-2f;  // q in two parts, because one chain waits twice as long
  high = high * t + 2.861953378e-1f;
  high = high * t - 3.357659280e-1f;
  high = high * t + 3.559028208e-1f;
  float low = -9.859701246e-2f;
  low = low * t + 1.269642413e-1f;
  low = low * t + 6.862307340e-2f;
  low = low * t + 8.515483141e-2f;
  low = low * t + 8.370605856e-2f;
  const float q = high * (t2 * t2 * t) + low;
  const float tail = bell * (t * q);
  return {bell, x < 0.0f ? tail : 1.0f - tail};
}

[[gnu::always_inline]] inline float sigmoid(float x) {
  const float e = expOfNegative(-std::fabs(x));
  const float above = 1.0f / (1.0f + e);  // sigmoid(|x|)
  return x < 0.0f ? e * above : above;
}

[[gnu::always_inline]] inline float tanh(float x) {
  const float e = expOfNegative(-2.0f * std::fabs(x));
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
