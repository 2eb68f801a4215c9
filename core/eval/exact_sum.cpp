#include "muster/core/eval/exact_sum.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "muster/core/base/error.h"

namespace muster {
namespace {

constexpr int kDigitBits = 32;
constexpr int kBias = 1152;  // the smallest bit of a double, 2^-1127 at most, is in the first digits
constexpr int kMantissaBits = 53;
constexpr std::int64_t kMostPending = std::int64_t{1} << 30;  // digits then still fit 63 bits

/// a + b without rounding.
WideNumber exactly(double a, double b) {
  const double sum = a + b, other = sum - a;
  return {sum, (a - (sum - other)) + (b - other)};
}

}  // namespace

WideNumber operator*(WideNumber a, WideNumber b) {
  const double product = a.high * b.high;
  return exactly(product, std::fma(a.high, b.high, -product) + (a.high * b.low + a.low * b.high));
}

WideNumber operator-(WideNumber a, WideNumber b) {
  const WideNumber high = exactly(a.high, -b.high), low = exactly(a.low, -b.low);
  const WideNumber sum = exactly(high.high, high.low + low.high);
  return exactly(sum.high, sum.low + low.low);
}

void ExactSum::add(double value) {
  if (value == 0) return;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // value = fraction * 2^exponent
  const auto mantissa = static_cast<std::int64_t>(std::ldexp(std::abs(fraction), kMantissaBits));
  const int place = exponent - kMantissaBits + kBias;
  const auto digit = static_cast<std::size_t>(place / kDigitBits);
  __extension__ using Wide = unsigned __int128;
  auto bits = static_cast<Wide>(mantissa) << (place % kDigitBits);
  for (std::size_t i = digit; bits != 0; ++i, bits >>= kDigitBits) {
    const auto part = static_cast<std::int64_t>(static_cast<std::uint32_t>(bits));
    digits_[i] += value < 0 ? -part : part;
  }
  if (++pending_ == kMostPending) carry();
}

void ExactSum::add(const ExactSum& other) {
  ExactSum canonical = other;
  canonical.carry();
  carry();
  for (std::size_t i = 0; i < kDigits; ++i) digits_[i] += canonical.digits_[i];
  carry();
}

/// Afterwards each digit but the last is in [0, 2^32), and the last has the sign.
void ExactSum::carry() {
  std::int64_t carried = 0;
  for (std::size_t i = 0; i + 1 < kDigits; ++i) {
    const std::int64_t digit = digits_[i] + carried;
    carried = digit >> kDigitBits;
    digits_[i] = digit - carried * (std::int64_t{1} << kDigitBits);
  }
  digits_[kDigits - 1] += carried;
  pending_ = 0;
}

WideNumber ExactSum::wide() const {
  ExactSum sum = *this;
  sum.carry();
  const bool negative = sum.digits_.back() < 0;
  if (negative) {
    for (auto& digit : sum.digits_) digit = -digit;
    sum.carry();
  }
  WideNumber all;
  int left = 5;  // digits: more than the bits of two doubles
  for (std::size_t i = kDigits; i-- > 0 && left > 0;) {
    if (sum.digits_[i] == 0 && left == 5) continue;
    const double term =
        std::ldexp(static_cast<double>(sum.digits_[i]), static_cast<int>(i) * kDigitBits - kBias);
    const WideNumber more = exactly(all.high, term);
    all = exactly(more.high, all.low + more.low);
    --left;
  }
  return negative ? WideNumber{-all.high, -all.low} : all;
}

bool ExactSum::operator==(const ExactSum& other) const {
  return toNumbers() == other.toNumbers();
}

std::array<std::int64_t, ExactSum::kDigits> ExactSum::toNumbers() const {
  ExactSum sum = *this;
  sum.carry();
  return sum.digits_;
}

ExactSum ExactSum::fromNumbers(std::span<const std::int64_t> numbers) {
  const auto digits = numbers.first(kDigits - 1);
  require(std::ranges::all_of(digits, [](std::int64_t d) { return d >= 0 && d >> kDigitBits == 0; }) &&
              std::abs(numbers[kDigits - 1] >> 1) < kMostPending,
          "evaluation: these digits are no sum's");
  ExactSum sum;
  std::ranges::copy(numbers.first(kDigits), sum.digits_.begin());
  return sum;
}

}  // namespace muster
