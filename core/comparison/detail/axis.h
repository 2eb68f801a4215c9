#pragma once

#include <string>
#include <vector>

namespace muster::detail {

/// How an axis places values.
enum class Scale {
  Linear,
  Log,
  /// For accuracies: by the logarithm of the error, so that 98 to 99 % is as far as 80 to 90 %.
  Error
};

/// An axis: maps values to places between 0 and 1.
struct Axis {
  Scale scale = Scale::Linear;
  double low = 0, high = 1;  ///< of what `transformed` returns
  /// With Scale::Error smaller errors are placed here; half an example, since of none the logarithm is
  /// infinite.
  double leastError = 1e-5;
  /// That holds the values, and a `pad`th of their range more on either side; 1 more if all are 0.
  static Axis of(const std::vector<double>& values, Scale scale, double pad, double leastError = 1e-5);
  double transformed(double value) const;
  double place(double value) const { return (transformed(value) - low) / (high - low); }
  /// Round numbers on it, about `count` of them, and with Scale::Error so far apart that their texts do not
  /// overlap.
  std::vector<double> ticks(int count) const;
  /// The sorted ticks that are far enough from the one above.
  std::vector<double> apart(const std::vector<double>& ticks) const;
};

/// Round numbers from `low` to `high`, about `count` of them. Source: Heckbert 1990, "Nice numbers for graph
/// labels".
std::vector<double> niceTicks(double low, double high, int count);

/// Powers of ten, and between them 2 and 5 times those if there are few.
std::vector<double> logTicks(double low, double high);

/// A number at a tick, as in `12,000`, `0.25` or `1e-5`.
std::string tickText(double value);

}  // namespace muster::detail
