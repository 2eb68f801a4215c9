#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace comparing {

/// A text in HTML or SVG, also as the value of an attribute.
std::string escaped(std::string_view text);

/// Round numbers from `low` to `high`, about `count` of them. Source: Heckbert 1990, "Nice numbers for graph
/// labels".
std::vector<double> niceTicks(double low, double high, int count);

/// Powers of ten, and between them 2 and 5 times those if there are few.
std::vector<double> logTicks(double low, double high);

/// An axis: maps values to places between 0 and 1.
struct Axis {
  double (*transform)(double) = [](double value) { return value; };
  double low = 0, high = 1;  ///< transformed
  double place(double value) const { return (transform(value) - low) / (high - low); }
};

/// A number at a tick, as in `12,000`, `0.25` or `1e-5`.
std::string tickText(double value);

}  // namespace comparing
