#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace muster {

/// A number in twice the precision of double: high + low, where low is less than the last digit of high.
struct WideNumber {
  double high = 0, low = 0;

  friend WideNumber operator*(WideNumber a, WideNumber b);
  friend WideNumber operator-(WideNumber a, WideNumber b);
};

/// The exact sum of doubles: the same for every order of adding, and however the numbers were split into
/// parts that are added up later.
///
/// Source: Kulisch and Miranker 1986, "The arithmetic of the digital computer", a fixed-point number as wide
/// as all doubles.
class ExactSum {
 public:
  static constexpr std::size_t kDigits = 72;

  /// @param value  finite.
  void add(double value);
  void add(const ExactSum& other);
  /// The sum, rounded.
  double value() const { return wide().high; }
  WideNumber wide() const;

  /// Whether the sums are equal.
  bool operator==(const ExactSum& other) const;

  /// The same digits for the same sum.
  std::array<std::int64_t, kDigits> toNumbers() const;
  /// The reverse of it, for `kDigits` numbers. @throws InvalidArgument for others than `toNumbers` gives.
  static ExactSum fromNumbers(std::span<const std::int64_t> numbers);

 private:
  void carry();

  std::array<std::int64_t, kDigits> digits_{};  // [i] counts 2^(32 i - kBias)
  std::int64_t pending_ = 0;                    // numbers added since the last carry
};

}  // namespace muster
