#pragma once

#include <cstddef>
#include <span>

namespace example {

/// Mean and spread of some numbers.
struct Spread {
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;  ///< sample standard deviation (n - 1); 0 for fewer than two numbers
};

/// Source: the two-pass formula.
Spread spreadOf(std::span<const double> values);

}  // namespace example
