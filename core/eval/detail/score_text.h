#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace muster::detail {

/// A coefficient of determination to read: equal labels have none.
inline std::string r2Text(double r2) {
  return std::isnan(r2) ? "undefined" : fmt::format("{:.4f}", r2);
}

}  // namespace muster::detail
