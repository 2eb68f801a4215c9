#pragma once

#include <algorithm>
#include <span>
#include <string>

namespace muster::detail {

/// Width of a table's first column: that of the longest label, at least 10.
inline int labelWidth(std::span<const std::string> labels) {
  const auto characters = [](const std::string& text) {  // bytes but those that continue a UTF-8 character
    return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  };
  std::ptrdiff_t width = 10;
  for (const auto& label : labels) width = std::max(width, characters(label));
  return static_cast<int>(width);
}

}  // namespace muster::detail
