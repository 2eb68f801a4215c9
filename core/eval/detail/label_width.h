#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "muster/core/base/utf8.h"

namespace muster::detail {

/// Width of a table's first column: that of the longest label, at least 10.
inline int labelWidth(std::span<const std::string> labels) {
  std::size_t width = 10;
  for (const auto& label : labels) width = std::max(width, utf8Length(label));
  return static_cast<int>(width);
}

}  // namespace muster::detail
