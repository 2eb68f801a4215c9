#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sstream>

#include "tests/support/standard.h"

namespace muster::test {

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

/// The values in one text, "3 0.5 true", for a check of several at once. Numbers have all their digits.
template <typename... T>
std::string textOf(const T&... values) {
  std::string text = (fmt::format("{} ", values) + ...);
  text.pop_back();
  return text;
}

/// As `textOf`, for numbers that are rounded to so many significant digits.
template <typename... T>
std::string digitsOf(int digits, const T&... values) {
  return textOf(fmt::format("{:.{}g}", static_cast<double>(values), digits)...);
}

/// The lines of a text, without their ends.
inline std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

namespace support {
/// What is wrong if `text` should, or should not, contain `part`; "" if nothing is.
inline std::string containing(std::string_view text, std::string_view part, bool wanted) {
  if (contains(text, part) == wanted) return "";
  return fmt::format("\"{}\" is {} \"{}\"", part, wanted ? "not in" : "in", text);
}
}  // namespace support

}  // namespace muster::test

#define CHECK_CONTAINS(text, part) CHECK(::muster::test::support::containing(text, part, true) == "")
#define CHECK_LACKS(text, part) CHECK(::muster::test::support::containing(text, part, false) == "")
