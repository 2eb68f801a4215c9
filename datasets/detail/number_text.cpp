#include "muster/datasets/detail/number_text.h"

#include <algorithm>
#include <array>
#include <string>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/io/json_value.h"
#include "muster/datasets/cell_values.h"

namespace muster::detail {
namespace {

constexpr std::size_t kLongestUnit = 8;  // bytes

bool isCurrency(std::string_view text) {
  static constexpr std::array<std::string_view, 5> kSigns{"$", "\u20ac", "\u00a3", "\u00a5", "\u20b9"};
  return std::ranges::find(kSigns, text) != kSigns.end();
}

/// What a cell has before and after its digits, without a sign, blanks and decimal points; nothing if that is
/// no unit.
std::optional<NumberText> unitsIn(std::string_view cell) {
  const auto first = cell.find_first_of("0123456789"), last = cell.find_last_of("0123456789");
  if (first == cell.npos) return std::nullopt;
  auto before = cell.substr(0, first), after = cell.substr(last + 1);
  constexpr std::string_view kSigns = ".+- ";
  while (!before.empty() && kSigns.find(before.back()) != kSigns.npos) before.remove_suffix(1);
  while (!before.empty() && kSigns.find(before.front()) != kSigns.npos) before.remove_prefix(1);
  if (after.starts_with('.')) after.remove_prefix(1);
  after = trimmed(after);
  if ((!before.empty() && !isCurrency(before)) || after.size() > kLongestUnit) return std::nullopt;
  return NumberText{.before = std::string(before), .after = std::string(after)};
}

/// Whether words beside each other are numbers with units, not codes as "5a".
bool hasClearUnit(std::string_view cell, const NumberText& text) {
  return !text.before.empty() || text.after == "%" || isCurrency(text.after) || cell.find(' ') != cell.npos;
}

/// With the first comma as a decimal point, and without all of them.
std::array<std::string, 2> readings(std::string_view cell) {
  std::array<std::string, 2> both{std::string(cell), std::string(cell)};
  both[0][cell.find(',')] = '.';
  std::erase(both[1], ',');
  return both;
}

}  // namespace

std::optional<NumberText> numberTextOf(const Table& table, std::size_t column,
                                       const std::map<std::string_view, std::int64_t>& words) {
  NumberText text;
  std::string_view example, withComma;
  bool separateThousands = false;  // "1,000,000" and "1,000.50" cannot be read otherwise
  for (const auto& [cell, rows] : words) {
    if (isMissingNumber(cell) || numberIn(cell)) continue;
    const auto units = unitsIn(cell);
    if (!units) return std::nullopt;
    if (*units != NumberText{} && *units != text) {
      if (text != NumberText{}) {
        if (hasClearUnit(cell, *units) && hasClearUnit(example, text))
          logWarning("column {}: its numbers have several units, as {} and {}, so they are read as words",
                     table.names()[column], quoteJson(example), quoteJson(cell));
        return std::nullopt;
      }
      text = *units;
      example = cell;
    }
    const auto comma = cell.find(',');
    if (comma == cell.npos) continue;
    if (withComma.empty()) withComma = cell;
    separateThousands =
        separateThousands || cell.find(',', comma + 1) != cell.npos || cell.find('.') != cell.npos;
  }
  text.thousands = !withComma.empty();
  if (text == NumberText{}) return std::nullopt;
  for (const auto& [cell, rows] : words)
    if (!isMissingNumber(cell) && !numberIn(cell, text)) return std::nullopt;
  if (text.thousands && !separateThousands && table.format().separator != ',') {
    const auto [decimal, whole] = readings(withComma);
    throw FileError(table.origin(),
                    fmt::format("column {} has commas that may be decimal or separate thousands, as {}; "
                                "write {} or {}",
                                table.names()[column], quoteJson(withComma), decimal, whole));
  }
  logInfo("column {}: {} is read as the number {}", table.names()[column],
          quoteJson(withComma.empty() ? example : withComma),
          *numberIn(withComma.empty() ? example : withComma, text));
  return text;
}

}  // namespace muster::detail
