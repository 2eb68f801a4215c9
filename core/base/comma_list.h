#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace muster {

/// The parts of a text between its commas, as views of it: "a,b" has two, and a text without commas is one.
inline std::vector<std::string_view> commaList(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace muster
