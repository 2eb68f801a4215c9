#include "muster/datasets/detail/unknown_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/text_table.h"
#include "muster/core/io/json_value.h"
#include "muster/datasets/cell_values.h"
#include "muster/datasets/table_examples.h"

namespace muster::detail {
namespace {

constexpr std::size_t kMostWordsShown = 3;

/// With small letters (of ASCII), and without blanks, "_" and "-" beside a letter between other characters.
std::string essence(std::string_view word) {
  const auto isLetter = [&](std::size_t at) {
    const auto c = static_cast<unsigned char>(word[at]);
    return std::isalpha(c) != 0 || c >= 0x80;
  };
  std::string text;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool between = i > 0 && i + 1 < word.size() && (isLetter(i - 1) || isLetter(i + 1));
    if (!between || std::string_view(" \t_-").find(word[i]) == std::string_view::npos)
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(word[i])));
  }
  return text;
}

/// A word in quotes, with the known one that looks like it.
std::string shown(std::string_view word, const std::vector<std::string>& known) {
  const auto twin = std::ranges::find_if(known, [&](const auto& other) { return looksLike(word, other); });
  return twin == known.end() ? quoteJson(word)
                             : fmt::format("{} (known is {})", quoteJson(word), quoteJson(*twin));
}

/// Logs the words of a column that a model has no feature for, or that are no numbers or dates.
void logOthers(const ColumnDescription& column, const Table& table, std::span<const std::int64_t> rows) {
  const auto place = table.find(column.name);
  if (!place) return;
  const bool words = column.kind == ColumnKind::Words;
  std::map<std::string_view, std::int64_t> unknown;  // [word] its first line
  std::int64_t count = 0;
  for (const auto row : rows) {
    const auto cell = table.cell(row, *place);
    if (words ? isMissing(cell) || std::ranges::binary_search(column.words, cell) : isReadable(column, cell))
      continue;
    unknown.emplace(cell, table.line(row));
    ++count;
  }
  if (unknown.empty()) return;
  std::vector<std::string> some;
  for (const auto& [word, line] : unknown)
    if (some.size() < kMostWordsShown)
      some.push_back(words ? shown(word, column.words) : fmt::format("{} in line {}", quoteJson(word), line));
  log(words ? LogLevel::Info : LogLevel::Warning,
      fmt::format("column {}: {} {} {} {}: {}{}", csvField(column.name), plural(count, "row"),
                  count == 1 ? "has" : "have", unknown.size() == 1 ? "a word" : "words",
                  words ? "for which the model has no feature"
                        : fmt::format("where it has {}s, as if the {} were missing", nameOf(column.kind),
                                      nameOf(column.kind)),
                  fmt::join(some, ", "), unknown.size() > kMostWordsShown ? ", ..." : ""));
}

/// Warns of numbers without the unit that those of the training had, if none has it.
void warnOfUnit(const ColumnDescription& column, const Table& table, std::span<const std::int64_t> rows) {
  const auto& unit = column.text.before.empty() ? column.text.after : column.text.before;
  const auto place = table.find(column.name);
  if (unit.empty() || !place) return;
  std::string_view first;
  for (const auto row : rows) {
    const auto cell = table.cell(row, *place);
    if (cell.find(unit) != cell.npos) return;
    if (first.empty() && numberIn(cell)) first = cell;
  }
  if (!first.empty())
    logWarning("column {}: no row has the unit {} that the model learned with; {} is read as if it had it",
               csvField(column.name), quoteJson(unit), quoteJson(first));
}

}  // namespace

bool looksLike(std::string_view one, std::string_view other) {
  return essence(one) == essence(other);
}

bool isReadable(const ColumnDescription& column, std::string_view cell) {
  if (isMissingNumber(cell)) return true;
  return column.kind == ColumnKind::Date ? daysIn(cell, column.order).has_value()
                                         : numberIn(cell, column.text).has_value();
}

void logUnknownWords(const InputDescription& description, const Table& table,
                     std::span<const std::int64_t> rows) {
  const auto all = allRows(table);
  for (const auto& column : description.columns) {
    if (column.kind == ColumnKind::Words) logOthers(column, table, rows);
    warnOfUnit(column, table, all);
  }
  logStrayValues(description, table, rows);
}

void logUnknownWords(const InputDescription& description, const Table& table) {
  logUnknownWords(description, table, allRows(table));
}

void logStrayValues(const InputDescription& description, const Table& table,
                    std::span<const std::int64_t> rows) {
  for (const auto& column : description.columns)
    if (column.kind != ColumnKind::Words) logOthers(column, table, rows);
}

}  // namespace muster::detail
