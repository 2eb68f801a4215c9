#include "muster/datasets/detail/number_text.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/text_table.h"
#include "muster/core/io/json_value.h"
#include "muster/datasets/cell_values.h"

namespace muster::detail {
namespace {

constexpr double kNumberShare = 0.9;     // of values that are numbers in a column of numbers
constexpr std::size_t kLongestUnit = 8;  // bytes
constexpr std::string_view kDigits = "0123456789";

using Words = std::map<std::string_view, std::int64_t>;  // [cell] rows

bool isCurrency(std::string_view text) {
  static constexpr std::array<std::string_view, 5> kSigns{"$", "\u20ac", "\u00a3", "\u00a5", "\u20b9"};
  return std::ranges::find(kSigns, text) != kSigns.end();
}

/// Where the number ends that begins at `first`.
std::size_t endOfNumber(std::string_view cell, std::size_t first) {
  const auto end = std::min(cell.find_first_not_of("0123456789.,", first), cell.size());
  if (end == cell.size() || (cell[end] != 'e' && cell[end] != 'E')) return end;
  const auto exponent = cell.find_first_not_of("+-", end + 1);
  if (exponent == cell.npos || exponent > end + 2 || kDigits.find(cell[exponent]) == kDigits.npos) return end;
  return std::min(cell.find_first_not_of(kDigits, exponent), cell.size());
}

/// Whether a text after a number may be its unit. Digits have only squares and cubes of lengths, as "m2",
/// "kg/m3" and "ft^3".
bool isUnit(std::string_view text) {
  if (text.size() > kLongestUnit) return false;
  const auto digit = text.find_first_of(kDigits);
  if (digit == text.npos) return true;
  if (digit + 1 != text.size() || (text.back() != '2' && text.back() != '3')) return false;
  static constexpr std::array<std::string_view, 11> kLengths{"m",  "km", "dm", "cm", "mm", "um",
                                                             "nm", "ft", "in", "yd", "mi"};
  text.remove_suffix(text[digit - (digit > 0)] == '^' ? 2 : 1);
  text.remove_prefix(text.find('/') + 1);  // npos + 1 is 0
  return std::ranges::find(kLengths, text) != kLengths.end();
}

/// What a cell has before and after its number, without a sign, blanks and decimal points; nothing if that is
/// no unit.
std::optional<NumberText> unitsIn(std::string_view cell) {
  const auto first = cell.find_first_of(kDigits);
  if (first == cell.npos) return std::nullopt;
  auto before = cell.substr(0, first);
  constexpr std::string_view kSigns = ".+- ";
  while (!before.empty() && kSigns.find(before.back()) != kSigns.npos) before.remove_suffix(1);
  while (!before.empty() && kSigns.find(before.front()) != kSigns.npos) before.remove_prefix(1);
  const auto after = trimmed(cell.substr(endOfNumber(cell, first)));
  if ((!before.empty() && !isCurrency(before)) || !isUnit(after)) return std::nullopt;
  return NumberText{.before = std::string(before), .after = std::string(after)};
}

/// Whether words beside each other are numbers with units, not codes as "5a".
bool hasClearUnit(std::string_view cell, const NumberText& text) {
  return !text.before.empty() || text.after == "%" || isCurrency(text.after) || cell.find(' ') != cell.npos;
}

struct Unit {
  NumberText text;
  std::string_view example;
  std::int64_t rows = 0;
};

/// The units of a column's cells, the commonest first.
std::vector<Unit> unitsOf(const Words& words) {
  std::vector<Unit> units;
  for (const auto& [cell, rows] : words) {
    if (isMissingNumber(cell) || numberIn(cell)) continue;
    const auto text = unitsIn(cell);
    if (!text || *text == NumberText{}) continue;
    auto found = std::ranges::find(units, *text, &Unit::text);
    if (found == units.end()) found = units.insert(found, {.text = *text, .example = cell});
    found->rows += rows;
  }
  std::ranges::stable_sort(units, std::ranges::greater{}, &Unit::rows);
  return units;
}

/// A cell with this unit whose number is not 0, if there is one.
std::string_view exampleOf(const Unit& unit, const Words& words) {
  const auto found = std::ranges::find_if(words, [&](const auto& word) {
    return unitsIn(word.first) == unit.text && numberIn(word.first, unit.text).value_or(0) != 0;
  });
  return found == words.end() ? unit.example : std::string_view(found->first);
}

/// The cells with commas of a column.
struct Commas {
  std::string_view example;        // "": none has any
  bool separateThousands = false;  // "1,000,000" and "1,000.50" cannot be read otherwise
};

/// @param unit  of the column; cells with another one do not count.
Commas commasIn(const Words& words, const NumberText& unit) {
  Commas commas;
  for (const auto& [cell, rows] : words) {
    const auto comma = cell.find(',');
    if (comma == cell.npos) continue;
    const auto text = unitsIn(cell);
    if (!text || (*text != NumberText{} && *text != unit)) continue;
    if (commas.example.empty()) commas.example = cell;
    commas.separateThousands =
        commas.separateThousands || cell.find(',', comma + 1) != cell.npos || cell.find('.') != cell.npos;
  }
  return commas;
}

/// Whether nearly all values are numbers, of any unit.
bool measured(const Words& words) {
  std::int64_t all = 0, numbers = 0;
  for (const auto& [cell, rows] : words) {
    if (isMissingNumber(cell)) continue;
    all += rows;
    if (numberIn(cell) || unitsIn(cell)) numbers += rows;
  }
  return nearlyAll(numbers, all);
}

/// With its comma as a decimal point; nothing if it has none, or several.
std::optional<std::string> withPoint(std::string_view cell) {
  const auto comma = cell.find(',');
  if (comma == cell.npos || cell.find_first_of(",.", comma + 1) != cell.npos || cell.find('.') < comma)
    return std::nullopt;
  std::string text(cell);
  text[comma] = '.';
  return text;
}

/// A number whose comma is a decimal one, as "1,5 kg": it separates no thousands. "" if there is none.
std::string_view decimalComma(const Words& words, const NumberText& text) {
  const NumberText plain{.before = text.before, .after = text.after};
  for (const auto& [cell, rows] : words)
    if (const auto number = withPoint(cell); number && numberIn(*number, plain) && !numberIn(cell, text))
      return cell;
  return {};
}

/// Whether nearly all values are numbers that are written so, or have decimal commas.
bool fits(const Words& words, const NumberText& text, bool decimal) {
  std::int64_t all = 0, numbers = 0;
  for (const auto& [cell, rows] : words) {
    if (isMissingNumber(cell)) continue;
    all += rows;
    const auto number = decimal ? withPoint(cell) : std::nullopt;
    if (number ? numberIn(*number, text) : numberIn(cell, text)) numbers += rows;
  }
  return nearlyAll(numbers, all);
}

/// With the first comma as a decimal point, and without all of them.
std::array<std::string, 2> readings(std::string_view cell) {
  std::array<std::string, 2> both{std::string(cell), std::string(cell)};
  both[0][cell.find(',')] = '.';
  std::erase(both[1], ',');
  return both;
}

}  // namespace

bool nearlyAll(std::int64_t some, std::int64_t all) {
  return some > 0 && static_cast<double>(some) >= kNumberShare * static_cast<double>(all);
}

std::optional<NumberText> numberTextOf(const Table& table, std::size_t column, const Words& words) {
  const auto units = unitsOf(words);
  NumberText text = units.empty() ? NumberText{} : units.front().text;
  const auto [withComma, separateThousands] = commasIn(words, text);
  text.thousands = !withComma.empty();
  if (text == NumberText{}) return std::nullopt;
  const auto name = csvField(table.names()[column]);
  if (units.size() > 1) {
    if (measured(words) && hasClearUnit(units[0].example, units[0].text) &&
        hasClearUnit(units[1].example, units[1].text))
      logWarning("column {}: its numbers have several units, as {} and {}, so they are read as words", name,
                 quoteJson(units[0].example), quoteJson(units[1].example));
    return std::nullopt;
  }
  if (const auto decimal = decimalComma(words, text); !decimal.empty()) {
    if (!fits(words, {.before = text.before, .after = text.after}, true)) return std::nullopt;
    throw FileError(table.origin(), fmt::format("column {} has decimal commas, as {}; write points", name,
                                                quoteJson(decimal)));
  }
  if (!fits(words, text, false)) return std::nullopt;
  if (text.thousands && !separateThousands && table.format().separator != ',') {
    const auto [decimal, whole] = readings(withComma);
    throw FileError(table.origin(),
                    fmt::format("column {} has commas that may be decimal or separate thousands, as {}; "
                                "write {} or {}",
                                name, quoteJson(withComma), decimal, whole));
  }
  const auto example = withComma.empty() ? exampleOf(units.front(), words) : withComma;
  if (const auto number = numberIn(example, text))
    logInfo("column {}: {} is read as the number {}", name, quoteJson(example), *number);
  return text;
}

}  // namespace muster::detail
